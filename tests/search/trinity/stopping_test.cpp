// SPDX-License-Identifier: Apache-2.0
// Who stops learning keeps the best until then.
#include <QtTest>

#include <algorithm>
#include <functional>

#include "core/search/placement/judge.h"
#include "core/search/placement_registry.h"
#include "core/search/trinity/trainer.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::test;
using namespace turnpoint::trinity;

namespace {

/// A context that asks for a stop when the phase begins with these words.
struct StoppedAt {
  explicit StoppedAt(std::string words) {
    context.stop = stop.get_token();
    context.threads = 1;
    context.progress = [this, words = std::move(words)](const Progress& progress) {
      phases.push_back(progress.phase);
      if (progress.phase.starts_with(words)) stop.request_stop();
    };
  }
  std::stop_source stop;
  std::vector<std::string> phases;
  RunContext context;
};

placement::PlacementRequest on_three(std::uint64_t seed = 0) {
  placement::PlacementRequest request;
  request.devices = 3;
  request.seed = seed;
  return request;
}

Expected<SimulatedPlacement> placed_until(StoppedAt& stopped, const std::string& parameters, const TaskGraph& graph) {
  return placement::run_placement(**placement::find_placement_method("trinity"), graph, on_three(), stopped.context,
                                  parameters);
}

}  // namespace

class StoppingTest : public QObject {
  Q_OBJECT

 private slots:
  void what_was_learnt_is_kept() {
    const auto graph = random_task_graph(5, 30);
    Settings settings;
    settings.budget.iterations = 1000;
    settings.hidden = 32;
    StoppedAt stopped("iteration 3,");
    std::vector<Iteration> iterations;
    const auto learnt = learn(*graph, on_three(), settings, nullptr, stopped.context,
                              [&](const Iteration& iteration) { iterations.push_back(iteration); });
    QVERIFY(learnt.has_value());
    QVERIFY(learnt->stopped);
    QCOMPARE(iterations.size(), std::size_t(3));
    QCOMPARE(learnt->iterations, std::uint64_t(3));
    QCOMPARE(learnt->best.seconds, iterations.back().best_seconds);
    placement::Judge judge(*graph, on_three());
    QCOMPARE(judge.measure(learnt->best.placement)->makespan_s, iterations.back().best_seconds);
    settings.budget.iterations = 3;
    const auto whole = learn(*graph, on_three(), settings, nullptr, {});
    QVERIFY(whole && !whole->stopped);
  }

  void nothing_learnt_is_no_answer() {
    StoppedAt stopped("");
    stopped.stop.request_stop();
    Settings settings;
    settings.budget.iterations = 10;
    const auto learnt = learn(*random_task_graph(5, 30), on_three(), settings, nullptr, stopped.context);
    QVERIFY(!learnt && learnt.error().code == ErrorCode::cancelled);
  }

  /// Stopped while pieces are tried out, while it is taught (where groups are said, none are tried) and while it
  /// learns: never worse than what it begins with, and marked.
  void a_stopped_method_answers() {
    const auto graph = random_task_graph(6, 40);
    const auto heft = placement::run_placement(**placement::find_placement_method("heft"), *graph, on_three(), {});
    QVERIFY(heft.has_value());
    for (const auto& [words, groups] : {std::pair("pieces that are tried out", ""),
                                        {"learning the placement to begin with", ":groups=12"},
                                        {"iteration 1,", ":groups=12"},
                                        {"iteration 1,", ""},
                                        {"iteration 4,", ""}}) {
      StoppedAt stopped(words);
      const auto placed = placed_until(stopped, std::string("from=heft:iterations=1000") + groups, *graph);
      QVERIFY2(placed.has_value(), words);
      QVERIFY(placement::stopped_early(*placed));
      QVERIFY(placed->makespan_s <= heft->makespan_s);
      QCOMPARE(placed->stages.back().makespan_s, placed->makespan_s);
      QCOMPARE(placed->stages.front().makespan_s, heft->makespan_s);
      QVERIFY2(placed->stages.back().name.ends_with(", stopped early"), placed->stages.back().name.c_str());
    }
    const auto whole = placement::run_placement(**placement::find_placement_method("trinity"), *graph, on_three(), {},
                                                "from=heft:iterations=2");
    QVERIFY(whole && !placement::stopped_early(*whole));
  }

  /// While the methods to begin with run the best of those that have ended is the answer, if one has.
  void stopped_before_it_learns() {
    const auto graph = random_task_graph(7, 40);
    StoppedAt first("to begin with: ");
    const auto nothing = placed_until(first, "", *graph);
    QVERIFY(!nothing && nothing.error().code == ErrorCode::cancelled);
    const auto pardnn = placement::run_placement(placement::default_placement_method(), *graph, on_three(), {});
    StoppedAt annealing("to begin with: Simulated annealing");
    const auto placed = placed_until(annealing, "", *graph);
    QVERIFY(pardnn && placed);
    QVERIFY(placement::stopped_early(*placed));
    QVERIFY(placed->makespan_s <= pardnn->makespan_s);
    QCOMPARE(placed->origin.substr(0, 14), std::string("the answer of "));
    QVERIFY(std::none_of(annealing.phases.begin(), annealing.phases.end(),
                         [](const std::string& phase) { return phase.starts_with("iteration"); }));
  }
};

QTEST_APPLESS_MAIN(StoppingTest)
#include "stopping_test.moc"
