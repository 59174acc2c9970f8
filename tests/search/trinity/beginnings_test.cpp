// SPDX-License-Identifier: Apache-2.0
// What learning begins with: a method's own answer under the same seed; groups that units lean towards; and what is
// tried out once, before anything is learnt.
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <set>

#include "core/plan/learning.h"
#include "core/search/placement_registry.h"
#include "core/search/trinity/partition_network.h"
#include "core/search/trinity/saved_state.h"
#include "core/search/trinity/trials.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::test;
using namespace turnpoint::trinity;

namespace {

/// `parts` chains of `length` tasks that exchange nothing with one another.
TaskGraphPtr chains(std::uint32_t parts, std::uint32_t length) {
  TaskGraphBuilder builder;
  for (std::uint32_t i = 0; i < parts * length; ++i) {
    TaskGraphBuilder::Task task;
    task.name = "t";
    task.time_s = 1;
    task.output_bytes = 1000;
    builder.add_task(task);
    if (i % length > 0) builder.add_edge(i - 1, i);
  }
  builder.links.bandwidth = 100;
  return *builder.finish("chains");
}

/// Tasks of all lengths, each of which reads two of the thirty before it: no search finds its optimum.
TaskGraphPtr tangle(std::uint32_t tasks) {
  Draw draw(7);
  TaskGraphBuilder builder;
  for (std::uint32_t to = 0; to < tasks; ++to) {
    TaskGraphBuilder::Task task;
    task.name = "t";
    task.time_s = 1 + 1e-3 * draw.below(4000);
    task.output_bytes = 20 + draw.below(300);
    builder.add_task(task);
  }
  for (std::uint32_t to = 1; to < tasks; ++to)
    for (int k = 0; k < 2; ++k) builder.add_edge(to - 1 - draw.below(std::min(to, 30u)), to);
  builder.links.bandwidth = 100;
  return *builder.finish("tangle");
}

placement::PlacementRequest request_of(std::uint32_t devices, std::uint64_t seed = 0) {
  placement::PlacementRequest request;
  request.devices = devices;
  request.seed = seed;
  return request;
}

/// Small networks that 4 and 8 groups are tried out for.
Settings trying(const Budget& budget) {
  Settings settings;
  settings.budget = budget;
  settings.hidden = 8;
  settings.tried_groups = {4, 8};
  return settings;
}

}  // namespace

class BeginningsTest : public QObject {
  Q_OBJECT

 private slots:
  /// pardnn draws since it anneals. Each seed has its own answer, and learning begins with that one.
  void from_a_method_is_its_answer_under_the_same_seed() {
    const auto graph = tangle(150);
    const auto& trinity = **placement::find_placement_method("trinity");
    const auto& pardnn = **placement::find_placement_method("pardnn");
    std::set<double> answers;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const auto own = placement::run_placement(pardnn, *graph, request_of(3, seed), {});
      const auto learnt = placement::run_placement(trinity, *graph, request_of(3, seed), {},
                                                   "from=pardnn:iterations=1:rollouts=2:hidden=8");
      QVERIFY(own && learnt);
      answers.insert(own->makespan_s);
      QCOMPARE(learnt->stages.size(), std::size_t(2));
      QCOMPARE(learnt->stages.front().makespan_s, own->makespan_s);
      QVERIFY(learnt->makespan_s <= own->makespan_s);
    }
    QVERIFY2(answers.size() > 2, "the seeds have one answer, which shows nothing");
  }

  /// By hand: of two tasks of a second on one device the one that has to send (a second) to a long task elsewhere goes
  /// first, which ends at 7 s. The other's consumer is beside it: counted as sent, its tensor would take ten seconds,
  /// and what has to be sent would come second, and the end at 8 s.
  void tasks_go_by_the_transfers_that_are_made() {
    TaskGraphBuilder builder;
    for (const auto& [seconds, bytes] : {std::pair(1, 1000), {1, 0}, {1, 100}, {5, 0}}) {
      TaskGraphBuilder::Task task;
      task.name = "t";
      task.time_s = seconds;
      task.output_bytes = bytes;
      builder.add_task(task);
    }
    builder.add_edge(0, 1);
    builder.add_edge(2, 3);
    builder.links.bandwidth = 100;
    const auto finished = builder.finish("two chains");
    QVERIFY2(finished, finished ? "" : finished.error().message().c_str());
    const auto graph = *finished;
    const auto request = request_of(2);
    Evaluation evaluation(*graph, request, 1);
    const auto placed = evaluation.of_devices({0, 0, 0, 1}, 0);
    QVERIFY(placed.has_value());
    QCOMPARE(placed->seconds, 7.0);
    const std::vector<std::vector<TaskIndex>> order{{2, 0, 1}, {3}};
    QCOMPARE(placed->placement.order, order);
    // A priority that is set counts instead.
    evaluation.set_priority({4, 3, 2, 1});
    const auto by_priority = evaluation.of_devices({0, 0, 0, 1}, 0);
    QVERIFY2(by_priority, by_priority ? "" : by_priority.error().message().c_str());
    QCOMPARE(by_priority->seconds, 9.0);
  }

  /// With all weights zero every group has the same score, so that the lean alone decides: its odds are exp(lean).
  void units_lean_towards_their_groups() {
    PartitionShape shape;
    shape.units = 3;
    shape.width = 2;
    shape.groups = 4;
    PartitionNetwork<double> network(shape);
    UnitFeatures features{3, 2, 1, std::vector<float>(6, 1), {0, 0, 0}};
    const std::vector<double> weights(network.places().size(), 0.0);
    PartitionNetwork<double>::Trace trace;
    network.forward(weights.data(), features, {}, trace);
    for (const double one : trace.log_probability) QVERIFY(std::abs(one - std::log(0.25)) < 1e-12);
    network.lean_towards({2, 0, 3}, std::log(9.0));  // 9 of 12, against 1 of 12 each
    network.forward(weights.data(), features, {}, trace);
    for (std::size_t u = 0; u < 3; ++u)
      for (std::size_t g = 0; g < 4; ++g) {
        const bool leans = g == (u == 0 ? 2u : u == 1 ? 0u : 3u);
        QVERIFY(std::abs(std::exp(trace.log_probability[u * 4 + g]) - (leans ? 0.75 : 1 / 12.0)) < 1e-12);
      }
  }

  /// Of 400 units one in the mean is not where it leans in a partition that is drawn, whatever the network's first
  /// scores; so the pieces that exchange nothing stay whole from the first placement on.
  void first_partitions_are_the_pieces() {
    const auto graph = chains(8, 50);
    Settings settings;
    settings.budget.iterations = 1;
    settings.rollouts = 32;
    settings.groups = 8;
    double strays = 0;
    const auto learnt = learn(*graph, request_of(2), settings, Beginning(nullptr), {});
    QVERIFY(learnt.has_value());
    const Problem problem = make_problem(*graph, request_of(2), settings.units, settings.groups);
    const auto piece = joined_pieces(*graph, problem.units, problem.groups);
    for (const Rollout& rollout : learnt->last)
      for (std::size_t u = 0; u < piece.size(); ++u) strays += rollout.units.choice[u] != piece[u];
    QVERIFY2(strays > 0 && strays < 5 * 32, qPrintable(QString::number(strays)));
  }

  /// Eight chains on two devices: with two groups half of all draws put everything on one device (mean 1.5 times the
  /// time of the others), with eight that is rare.
  void the_faster_number_of_groups_is_taken() {
    const auto graph = chains(8, 20);
    Settings settings;
    settings.tried_groups = {2, 8};
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const auto request = request_of(2, seed);
      Evaluation evaluation(*graph, request, 1);
      QCOMPARE(problem_to_learn(*graph, request, settings, false, evaluation, {}).problem.groups, std::size_t(8));
      QCOMPARE(evaluation.calls(), std::uint64_t(32));
    }
    // Nothing to choose, nothing tried.
    settings.tried_groups = {200, 300};
    const auto request = request_of(2);
    Evaluation evaluation(*graph, request, 1);
    QCOMPARE(problem_to_learn(*graph, request, settings, false, evaluation, {}).problem.groups, std::size_t(160));
    QCOMPARE(evaluation.calls(), std::uint64_t(0));
  }

  /// Everything on one device is worse than nearly all that is drawn of eight chains, and four chains on each of two
  /// devices are not to be beaten. Of both, and of a search's own answer, learning finds what it finds from nothing, to
  /// the last draw, and the better of both is the answer: with as many calls a beginning is never a loss.
  void from_a_placement_is_never_worse_than_from_nothing() {
    Settings settings = trying({.calls = 200, .iterations = {}, .seconds = {}});
    settings.refined_every = 32;
    int better = 0, worse = 0;
    for (const auto& [graph, devices] : {std::pair(chains(8, 20), 2u), std::pair(tangle(160), 3u)})
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const auto request = request_of(devices, seed);
        Placement one_device{
            .devices = devices, .device = std::vector<std::uint32_t>(160, 0), .order = {}, .cluster = {}};
        Placement halves = one_device;
        for (TaskIndex t = 80; t < 160; ++t) halves.device[t] = 1;
        const auto pardnn = placement::run_placement(**placement::find_placement_method("pardnn"), *graph, request, {});
        const auto nothing = learn(*graph, request, settings, nullptr, {});
        // Better than what is found below, and not yet as good as it can be.
        const auto longer =
            learn(*graph, request, trying({.calls = 600, .iterations = {}, .seconds = {}}), nullptr, {});
        QVERIFY(pardnn && nothing && longer);
        Evaluation evaluation(*graph, request, 1);
        for (const Placement* begin : std::initializer_list<const Placement*>{&one_device, &halves, &pardnn->placement,
                                                                              &longer->best.placement}) {
          const auto learnt = learn(*graph, request, settings, begin, {});
          QVERIFY(learnt.has_value());
          const double begun = evaluation.of_placement(*begin, 0)->seconds;
          QCOMPARE(learnt->best.seconds, std::min(begun, nothing->best.seconds));
          QCOMPARE(learnt->calls, nothing->calls);
          QCOMPARE(learnt->reward_last, nothing->reward_last);
          better += nothing->best.seconds < begun;
          worse += nothing->best.seconds > begun;
        }
      }
    QVERIFY(better > 0 && worse > 0);  // else this shows nothing
    // Also where there are fewer units than the smallest number of groups, so that nothing is tried; a number of groups
    // that is named has what it begins with taught.
    const auto small = chains(1, 4);
    Evaluation evaluation(*small, request_of(2), 1);
    QVERIFY(problem_to_learn(*small, request_of(2), settings, true, evaluation, {}).pieces);
    settings.tried_groups.clear();
    QVERIFY(!problem_to_learn(*small, request_of(2), settings, true, evaluation, {}).pieces);
    QCOMPARE(evaluation.calls(), std::uint64_t(0));
  }

  /// Two groups of two joined units on two devices can be placed in four ways at most. Single tasks find what none of
  /// these is, with the calls that are counted; without them the best of the four is the answer.
  void single_tasks_leave_what_they_were_joined_to() {
    const auto graph = tangle(40);
    Settings settings;
    settings.hidden = 8;
    settings.units = settings.groups = 2;
    settings.rollouts = 8;
    settings.budget.calls = 160;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const auto request = request_of(2, seed);
      const Problem problem = make_problem(*graph, request, settings.units, settings.groups);
      Evaluation evaluation(*graph, request, 1);
      double fastest = 1e300;
      for (const std::uint32_t first : {0u, 1u})
        for (const std::uint32_t second : {0u, 1u})
          fastest = std::min(fastest, evaluation.of_devices(problem.devices_of({0, 1}, {first, second}), 0)->seconds);
      settings.refined_every = 0;
      const auto drawn = learn(*graph, request, settings, nullptr, {});
      settings.refined_every = 16;
      const auto refined = learn(*graph, request, settings, nullptr, {});
      QVERIFY(drawn && refined);
      QCOMPARE(drawn->best.seconds, fastest);
      QCOMPARE(drawn->iterations, std::uint64_t(20));
      QVERIFY(refined->best.seconds < 0.9 * fastest);
      QVERIFY(refined->iterations < 14 && refined->calls >= 160 && refined->calls < 170);
    }
    QCOMPARE(printed_settings().refined_every, std::uint64_t(0));
    QCOMPARE(hierarchical_settings(4).refined_every, std::uint64_t(0));
  }

  /// Drawn here once more, with the streams that random_streams.h promises: of 16 placements of each number of pieces
  /// the fastest is the answer of a search that is stopped while the last number is tried, before anything is learnt.
  void the_best_that_was_drawn_is_kept() {
    const auto graph = tangle(60);
    const auto request = request_of(3);
    Settings settings = trying({.calls = {}, .iterations = 5, .seconds = {}});
    Evaluation evaluation(*graph, request, 1);
    double fastest = 1e300;
    for (const std::size_t groups : settings.tried_groups) {
      const Problem problem = make_problem(*graph, request, settings.units, groups);
      const auto piece = joined_pieces(*graph, problem.units, problem.groups);
      placement::Random random = stream_of(request.seed, 1ull << 60);
      for (int i = 0; i < 16; ++i) {
        std::vector<std::uint32_t> device(groups);
        for (std::uint32_t& one : device) one = random.below(3);
        fastest = std::min(fastest, evaluation.of_devices(problem.devices_of(piece, device), 0)->seconds);
      }
    }
    const Placement one_device{.devices = 3, .device = std::vector<std::uint32_t>(60, 0), .order = {}, .cluster = {}};
    const double begun = evaluation.of_placement(one_device, 0)->seconds;
    QVERIFY2(fastest < begun, "what is begun with is not beaten, which shows nothing");
    for (const Placement* begin : {static_cast<const Placement*>(nullptr), &one_device}) {
      std::stop_source stop;
      RunContext context;
      context.stop = stop.get_token();
      int trials = 0;
      context.progress = [&](const Progress& progress) {
        if (progress.phase == "pieces that are tried out" && ++trials == 2) stop.request_stop();
      };
      const auto learnt = learn(*graph, request, settings, begin, context);
      QVERIFY2(learnt, learnt ? "" : learnt.error().message().c_str());
      QVERIFY(learnt->stopped);
      QCOMPARE(learnt->iterations, std::uint64_t(0));
      QCOMPARE(learnt->best.seconds, fastest);
      const auto whole = learn(*graph, request, settings, begin, {});
      QVERIFY(whole && whole->iterations == 5 && whole->best.seconds <= fastest);
    }
    // What the trials spent of a small budget does not end it before anything was learnt.
    settings.budget = {.calls = 1, .iterations = {}, .seconds = {}};
    const auto small = learn(*graph, request, settings, nullptr, {});
    QVERIFY(small && small->iterations == 1 && small->best.seconds <= fastest);
  }

  /// A number of groups that no setting asks for is refused before anything of that size is made.
  void absurd_groups_of_a_state_are_refused() {
    const auto graph = chains(8, 20);
    Settings settings;
    settings.budget.iterations = 1;
    settings.hidden = 8;
    std::shared_ptr<const Learning> learning;
    RunContext context;
    context.progress = [&](const Progress& progress) {
      if (auto shown = std::dynamic_pointer_cast<const Learning>(progress.detail)) learning = shown;
    };
    QVERIFY(learn(*graph, request_of(2), settings, nullptr, context) && learning && learning->state());
    auto state = *read_saved_state(*learning->state());
    QCOMPARE(state.groups, std::uint64_t(settings.groups));
    auto request = request_of(2);
    for (const std::uint64_t groups :
         {std::uint64_t(0), std::uint64_t(33), std::uint64_t(1) << 62, ~std::uint64_t(0)}) {
      state.groups = groups;
      request.resume = std::make_shared<const std::string>(write_saved_state(state));
      const auto refused = learn(*graph, request, settings, nullptr, {});
      QVERIFY(!refused && refused.error().what.find("is of other settings") != std::string::npos);
    }
  }

  /// Nobody or fewer astray would be a lean without end, or none.
  void strays_are_above_zero() {
    Settings settings;
    settings.budget.iterations = 1;
    for (const double strays : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
      settings.strays = strays;
      const auto refused = learn(*chains(2, 3), request_of(2), settings, nullptr, {});
      QVERIFY(!refused && refused.error().code == ErrorCode::usage);
    }
  }

  /// What was tried out is in the state, and is not tried out again.
  void a_resumed_search_tries_nothing_out() {
    const auto graph = chains(8, 20);
    Settings settings = trying({.calls = {}, .iterations = 2, .seconds = {}});
    settings.units = 60;
    settings.tries_joinings = true;
    std::size_t trials = 0;
    std::shared_ptr<const Learning> learning;
    RunContext context;
    context.progress = [&](const Progress& progress) {
      trials += progress.phase == "pieces that are tried out";
      if (auto shown = std::dynamic_pointer_cast<const Learning>(progress.detail)) learning = shown;
    };
    const auto first = learn(*graph, request_of(2), settings, Beginning(nullptr), context);
    QVERIFY(first && learning && learning->state());
    QCOMPARE(trials, std::size_t(4));
    const auto state = read_saved_state(*learning->state());
    QVERIFY(state.has_value());
    auto request = request_of(2);
    request.resume = learning->state();
    trials = 0;
    const auto again = learn(*graph, request, settings, Beginning(nullptr), context);
    QVERIFY(again.has_value());
    QCOMPARE(trials, std::size_t(0));
    QCOMPARE(again->best.seconds, first->best.seconds);
    QCOMPARE(again->calls, first->calls);
    // It is the saved answer that counts, not what a new trial would say.
    auto changed = *state;
    QVERIFY(changed.groups == 4 || changed.groups == 8);
    changed.groups = 12 - changed.groups;
    request.resume = std::make_shared<const std::string>(write_saved_state(changed));
    const auto refused = learn(*graph, request, settings, Beginning(nullptr), {});
    QVERIFY(!refused && refused.error().what.find("the saved network has ") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(BeginningsTest)
#include "beginnings_test.moc"
