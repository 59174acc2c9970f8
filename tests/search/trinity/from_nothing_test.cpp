// SPDX-License-Identifier: Apache-2.0
// Learning that begins with nothing.
#include <QtTest>
#include <set>

#include "core/search/placement_registry.h"
#include "core/search/trinity/trainer.h"
#include "core/search/trinity/trinity_methods.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::trinity;

namespace {

constexpr std::uint32_t kParts = 8, kLayers = 24;

/// Layers that many parts of a batch go through, a second each, with tensors that take ten to send.
TaskGraphPtr layers_in_parts(std::uint32_t layers = kLayers) {
  TaskGraphBuilder builder;
  for (std::uint32_t part = 0; part < kParts; ++part)
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      TaskGraphBuilder::Task task;
      task.name = "layer";
      task.kind = TaskKind::forward;
      task.time_s = 1;
      task.output_bytes = 1000;
      builder.add_task(task);
      if (layer > 0) builder.add_edge(part * layers + layer - 1, part * layers + layer);
    }
  builder.links.bandwidth = 100;
  return *builder.finish("layers in parts");
}

}  // namespace

class FromNothingTest : public QObject {
  Q_OBJECT

 private slots:
  /// As many pieces as there are parts are the parts: nothing is cut that is sent.
  void pieces_exchange_little() {
    const TaskGraphPtr graph = layers_in_parts();
    for (const Joining joining : {Joining::by_exchange, Joining::by_rating}) {
      // One unit a task, and a third of them.
      for (const std::size_t most : {std::size_t(1000), std::size_t(kParts * kLayers / 3)}) {
        const UnitGraph units = make_unit_graph(*graph, most, joining);
        QVERIFY(units.count() <= most);
        const auto piece = joined_pieces(*graph, units, kParts);
        std::set<std::uint32_t> pieces;
        for (TaskIndex t = 0; t < graph->task_count(); ++t) {
          QCOMPARE(piece[units.of_task[t]], piece[units.of_task[t / kLayers * kLayers]]);
          pieces.insert(piece[units.of_task[t]]);
        }
        QCOMPARE(pieces.size(), std::size_t(kParts));
        QCOMPARE(*pieces.rbegin(), kParts - 1);
      }
    }
  }

  /// Graphs may have neither times nor edges: then neighbours along the layers are joined.
  void tasks_without_times_and_edges_are_joined() {
    TaskGraphBuilder builder;
    for (int t = 0; t < 30; ++t) builder.add_task({});
    const TaskGraphPtr graph = *builder.finish("nothing known");
    for (const Joining joining : {Joining::by_exchange, Joining::by_rating}) {
      const UnitGraph units = make_unit_graph(*graph, 10, joining);
      QCOMPARE(units.count(), std::size_t(10));
      const auto pieces = joined_pieces(*graph, units, 4);
      QCOMPARE(std::set<std::uint32_t>(pieces.begin(), pieces.end()).size(), std::size_t(4));
    }
  }

  /// Eight pieces on two devices are little to learn: half of them on each. With 1,600 units it is as little, as long
  /// as units stay in their pieces; where each learns as if it alone had made the reward, they do not.
  void groups_of_many_units_do_not_dissolve() {
    const TaskGraphPtr graph = layers_in_parts(200);
    placement::PlacementRequest request;
    request.devices = 2;
    Settings settings;
    settings.budget.calls = 640;
    settings.groups = kParts;
    settings.learning.entropy = 0.6;
    Iteration first, last;
    const auto learnt = learn(*graph, request, settings, Beginning(nullptr), {}, [&](const Iteration& one) {
      if (one.number == 1) first = one;
      last = one;
    });
    QVERIFY2(learnt, learnt ? "" : learnt.error().what.c_str());
    QVERIFY2(last.loss.unit_entropy < 0.2, qPrintable(QString::number(last.loss.unit_entropy)));
    QVERIFY2(last.mean_reward > first.mean_reward,
             qPrintable(QString("%1, then %2").arg(first.mean_reward).arg(last.mean_reward)));
    QVERIFY2(learnt->best.seconds < 0.55 * kParts * 200, qPrintable(QString::number(learnt->best.seconds)));
  }

  /// Two devices with half of the parts each are far better than one device, and devices at random far worse. Who
  /// begins with groups at random ends with one device, or next to it.
  void groups_begin_as_pieces() {
    const TaskGraphPtr graph = layers_in_parts();
    const double one_device = kParts * kLayers;
    double pieces = 0, at_random = 0;
    for (const std::uint64_t seed : {1, 2, 3}) {
      placement::PlacementRequest request;
      request.devices = 2;
      request.seed = seed;
      for (const bool joined : {true, false}) {
        Settings settings;
        settings.budget.calls = 600;
        settings.groups = 8;
        settings.joined_groups = joined;
        const auto learnt = learn(*graph, request, settings, Beginning(nullptr), {});
        QVERIFY2(learnt, learnt ? "" : learnt.error().what.c_str());
        (joined ? pieces : at_random) += learnt->best.seconds / 3;
        if (joined)
          QVERIFY2(learnt->best.seconds < 0.55 * one_device, qPrintable(QString::number(learnt->best.seconds)));
      }
    }
    QVERIFY2(at_random > 1.2 * pieces,
             qPrintable(QString("%1 s as pieces, %2 s at random").arg(pieces).arg(at_random)));
  }

  /// Joined in two ways, of which one is tried out with more placements than the budget has: there is an answer all the
  /// same, and it is the same again.
  void small_budgets_of_large_graphs_have_an_answer() {
    const TaskGraphPtr graph = layers_in_parts();
    placement::PlacementRequest request;
    request.devices = 2;
    const auto placed = [&] {
      return placement::run_placement(**placement::find_placement_method("trinity"), *graph, request, {},
                                      "from=scratch:calls=4:units=40");
    };
    const auto once = placed(), again = placed();
    QVERIFY2(once.has_value(), once ? "" : once.error().message().c_str());
    QVERIFY(again.has_value() && again->placement.device == once->placement.device);
  }

  void budgets_and_tolerances_of_zero() {
    for (const std::string method : {"trinity", "hierarchical"})
      for (const char* budget : {"calls=0", "iterations=0", "seconds=0", "calls=5:seconds=0", "seconds=-1"}) {
        const auto choice = placement::choose_placement_method(method + ":from=scratch:" + budget);
        const auto run = choice ? placement::run_of(*choice->method, choice->parameters)
                                : Expected<placement::PlacementMethod::Run>(choice.error());
        QVERIFY2(!run && run.error().code == ErrorCode::usage, budget);
        QVERIFY2(run.error().what.find('\n') == std::string::npos, run.error().what.c_str());
      }
    for (const char* tolerance : {"memory-tolerance=0", "communication-tolerance=0"})
      QVERIFY(!placement::run_of(**placement::find_placement_method("trinity"), tolerance));
    QVERIFY(placement::run_of(**placement::find_placement_method("trinity"), "seconds=0.5").has_value());
  }

  /// Unless the number of groups is said, three are tried, with sixteen placements each: of 64 calls 16 are left, which
  /// is one iteration. The predecessor has its own number.
  void groups_are_tried_out() {
    const TaskGraphPtr graph = layers_in_parts();
    placement::PlacementRequest request;
    request.devices = 2;
    const auto learnt = [&](const char* method, const char* parameters) {
      const auto found =
          placement::run_placement(**placement::find_placement_method(method), *graph, request, {}, parameters);
      return found ? found->stages.back().name : found.error().message();
    };
    QCOMPARE(learnt("trinity", "from=scratch:calls=64"), std::string("learnt, 64 placements in 1 iterations"));
    QCOMPARE(learnt("trinity", "from=scratch:calls=64:groups=8"), std::string("learnt, 64 placements in 4 iterations"));
    QCOMPARE(learnt("hierarchical", "calls=60"), std::string("learnt, 60 placements in 6 iterations"));
    // What is shown as the default is what happens.
    QCOMPARE(learnt("trinity", "from=scratch:calls=64:groups=0"), learnt("trinity", "from=scratch:calls=64"));
    QCOMPARE(learnt("hierarchical", "calls=60:groups=0"), std::string("learnt, 60 placements in 6 iterations"));
    for (const auto& options : {trinity_options(), hierarchical_options()})
      for (const OptionRecord& option : options)
        if (option.key == "groups") QCOMPARE(option.default_value, 0.0);
  }
};

QTEST_APPLESS_MAIN(FromNothingTest)
#include "from_nothing_test.moc"
