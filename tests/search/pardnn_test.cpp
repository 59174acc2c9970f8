// SPDX-License-Identifier: Apache-2.0
// ParDNN: the worked cases, what each stage promises on random graphs, and the memory step.
#include <QtTest>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/text.h"
#include "core/search/pardnn/clusters.h"
#include "core/search/pardnn/memory.h"
#include "core/search/pardnn/memory_ledger.h"
#include "core/search/placement/time_bound.h"
#include "core/search/placement_registry.h"
#include "core/simulation/simulator.h"
#include "processor_clock.h"
#include "sanitized.h"
#include "search/small_graphs.h"
#include "simulation/layered_dag.h"

using namespace turnpoint;
using namespace turnpoint::placement;

namespace {

Expected<SimulatedPlacement> try_place(const char* name, const TaskGraph& graph, const PlacementRequest& request,
                                       RunContext context = {}) {
  return run_placement(**find_placement_method(name), graph, request, context);
}

SimulatedPlacement place(const char* name, const TaskGraph& graph, const PlacementRequest& request, int threads = 1) {
  RunContext context;
  context.threads = threads;
  auto result = try_place(name, graph, request, context);
  if (!result) qFatal("%s: %s", name, result.error().message().c_str());
  return std::move(*result);
}

/// Tasks A ... G of the worked case; transfers take the seconds given.
TaskGraphPtr worked_case() {
  TaskGraphBuilder b;
  const double work[] = {2, 3, 4, 1, 2, 3, 2};
  for (int i = 0; i < 7; ++i) {
    TaskGraphBuilder::Task task;
    const std::string name(1, char('A' + i));
    task.name = name;
    task.time_s = work[i];
    b.add_task(task);
  }
  const int edges[][3] = {{0, 1, 1}, {0, 2, 2}, {0, 3, 1}, {1, 4, 1}, {2, 5, 2}, {3, 5, 1}, {4, 6, 1}, {5, 6, 1}};
  for (const auto& e : edges) b.add_edge(e[0], e[1], e[2]);
  b.links.bandwidth = 1;
  b.links.contention = TaskLinks::Contention::none;
  return *b.finish("worked case");
}

std::vector<TaskIndex> tasks_of(const pardnn::Clusters& clusters, std::uint32_t c) {
  return {clusters.tasks.begin() + clusters.begin[c], clusters.tasks.begin() + clusters.begin[c + 1]};
}

/// `pairs` producers, each with a consumer that reads its tensor after all producers ran: everything is held at once.
TaskGraphPtr held_at_once(std::uint32_t pairs, std::int64_t bytes) {
  TaskGraphBuilder b;
  TaskGraphBuilder::Task task;
  for (std::uint32_t i = 0; i < 2 * pairs; ++i) {
    task.time_s = 1;
    task.output_bytes = i < pairs ? bytes : 0;
    b.add_task(task);
  }
  for (std::uint32_t i = 0; i + 1 < 2 * pairs; ++i) b.add_edge(i, i + 1, 0);
  for (std::uint32_t i = 0; i < pairs; ++i) b.add_edge(i, 2 * pairs - 1 - i, bytes);
  b.links.bandwidth = 1e3;
  b.links.latency = 10;  // so dear that without a limit nothing is split
  return *b.finish("held at once");
}

}  // namespace

class PardnnTest : public QObject {
  Q_OBJECT

 private slots:
  void worked_case_is_sliced_as_printed() {
    const auto graph = worked_case();
    const ScheduleCosts costs(*graph, 2);
    QCOMPARE(bottom_levels(costs, 1.0), (std::vector<double>{16, 9, 12, 8, 5, 6, 2}));
    QCOMPARE(top_levels(costs, 1.0), (std::vector<double>{0, 3, 4, 3, 7, 10, 14}));
    const auto clusters = pardnn::slice(costs, {});
    QCOMPARE(clusters.primaries, 2u);
    QCOMPARE(clusters.size(), std::size_t(3));
    QCOMPARE(tasks_of(clusters, 0), (std::vector<TaskIndex>{0, 2, 5, 6}));
    QCOMPARE(tasks_of(clusters, 1), (std::vector<TaskIndex>{1, 4}));
    QCOMPARE(tasks_of(clusters, 2), (std::vector<TaskIndex>{3}));
    const auto device = pardnn::map_clusters(costs, clusters, pardnn::Mapping::level_aware, {});
    QCOMPARE(device, (std::vector<std::uint32_t>{0, 1, 0, 0, 1, 0, 0}));
    PlacementRequest request;
    request.devices = 2;
    QCOMPARE(place("pardnn-published", *graph, request).makespan_s, 12.0);
    QVERIFY(place("pardnn", *graph, request).makespan_s <= 12.0);
  }

  void clusters_are_disjoint_paths() {
    for (int seed = 0; seed < 100; ++seed) {
      const auto graph = test::random_task_graph(std::uint64_t(seed), 1 + std::size_t(seed));
      const ScheduleCosts costs(*graph, 4);
      const auto clusters = pardnn::slice(costs, {});
      std::vector<int> seen(graph->task_count(), 0);
      for (std::uint32_t c = 0; c < clusters.size(); ++c) {
        const auto tasks = tasks_of(clusters, c);
        QVERIFY(!tasks.empty());
        for (std::size_t i = 0; i < tasks.size(); ++i) {
          ++seen[tasks[i]];
          QCOMPARE(clusters.cluster[tasks[i]], c);
          if (i == 0) continue;
          const auto next = graph->successors(tasks[i - 1]);
          QVERIFY(std::find(next.begin(), next.end(), tasks[i]) != next.end());
        }
      }
      QVERIFY(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
      QVERIFY(clusters.primaries <= 4);
    }
  }

  /// Random graphs with groups and several sizes, with and without limits.
  void never_slower_than_as_printed_nor_than_on_fewer_devices() {
    const int seeds = qEnvironmentVariableIntValue("TURNPOINT_RANDOM_GRAPHS") > 0
                          ? qEnvironmentVariableIntValue("TURNPOINT_RANDOM_GRAPHS")
                          : 40;
    for (int seed = 0; seed < seeds; ++seed) {
      const auto graph = test::random_task_graph(std::uint64_t(seed), 20 + std::size_t(seed * 7 % 90));
      double fewer = 1e300;
      for (const std::uint32_t devices : {1, 2, 4, 8, 16}) {
        PlacementRequest request;
        request.devices = devices;
        const auto ours = place("pardnn", *graph, request);
        QVERIFY2(ours.makespan_s <= place("pardnn-published", *graph, request).makespan_s,
                 qPrintable(QString::number(seed)));
        QVERIFY2(ours.makespan_s <= fewer, qPrintable(QString("%1 on %2").arg(seed).arg(devices)));
        fewer = ours.makespan_s;
        if (devices == 1) continue;
        // Where it began is one of its stages.
        QVERIFY(std::any_of(ours.stages.begin(), ours.stages.end(),
                            [&](const PlacementStage& stage) { return stage.name == ours.origin; }) ||
                ours.stages.back().name.find("the answer on") == 0);
      }
    }
  }

  /// A parameter without time follows its update, whichever of them slicing meets first, and so is read there.
  void what_takes_no_time_is_carried_by_its_group() {
    TaskGraphBuilder b;
    const auto add = [&](double seconds, std::uint32_t group = kNone) {
      TaskGraphBuilder::Task task;
      task.time_s = seconds;
      task.colocate = group;
      return b.add_task(task);
    };
    const std::uint32_t first = b.group("first"), second = b.group("second");
    // Two chains of equal weight; each reads a parameter at its start and updates it at its end.
    for (const std::uint32_t group : {first, second}) {
      const TaskIndex parameter = add(0, group), forward = add(10), update = add(1, group);
      b.add_edge(parameter, forward, 3);
      b.add_edge(forward, update, 3);
    }
    b.links.bandwidth = 1;
    const auto graph = *b.finish("two parameters");
    const ScheduleCosts costs(*graph, 2);
    const auto clusters = pardnn::slice(costs, {});
    for (const auto mapping : {pardnn::Mapping::level_aware, pardnn::Mapping::dominated, pardnn::Mapping::guided}) {
      const auto device = pardnn::map_clusters(costs, clusters, mapping, {});
      QCOMPARE(device[0], device[2]);
      QCOMPARE(device[3], device[5]);
      QCOMPARE(device[0], device[1]);
      QVERIFY(device[1] != device[4]);
    }
  }

  /// Both methods say which clusters they made; they decide nothing, and others have none.
  void clusters_are_told() {
    const auto graph = worked_case();
    const ScheduleCosts costs(*graph, 2);
    PlacementRequest request;
    request.devices = 2;
    for (const char* name : {"pardnn", "pardnn-published"})
      QCOMPARE(place(name, *graph, request).placement.cluster, pardnn::slice(costs, {}).cluster);
    QVERIFY(place("heft", *graph, request).placement.cluster.empty());
  }

  /// Two primaries of equal load; what talks to one of them alone joins it by the released tests though the other has
  /// a little less to do in its window.
  void released_tests_follow_the_traffic() {
    const auto graph = worked_case();
    const ScheduleCosts costs(*graph, 2);
    const auto clusters = pardnn::slice(costs, {});
    const auto device = pardnn::map_clusters(costs, clusters, pardnn::Mapping::dominated, {});
    QCOMPARE(device, (std::vector<std::uint32_t>{0, 1, 0, 0, 1, 0, 0}));
  }

  void no_stage_is_slower_than_the_one_before() {
    for (int seed = 0; seed < 60; ++seed) {
      const auto graph = test::random_task_graph(std::uint64_t(seed), 60);
      PlacementRequest request;
      request.devices = 2 + std::uint32_t(seed) % 3;
      for (const char* name : {"pardnn", "pardnn-published"}) {
        const auto result = place(name, *graph, request);
        double best = 1e300;
        for (const auto& stage : result.stages)
          if (stage.name != "refined") best = std::min(best, stage.makespan_s);
        QVERIFY(!result.stages.empty());
        QVERIFY(result.stages.back().makespan_s <= best);
        QCOMPARE(result.stages.back().makespan_s, result.makespan_s);
      }
    }
  }

  /// The bounds that hold for any schedule.
  void makespans_are_possible() {
    for (int seed = 0; seed < 60; ++seed) {
      const auto graph = test::random_task_graph(std::uint64_t(seed), 50);
      PlacementRequest request;
      request.devices = 3;
      const ScheduleCosts costs(*graph, 3);
      const auto way = bottom_levels(costs, 0.0);
      const double longest = *std::max_element(way.begin(), way.end());
      const double shared = costs.total_task_s() / 3;
      for (const char* name : {"pardnn", "pardnn-published"}) {
        const double makespan = place(name, *graph, request).makespan_s;
        QVERIFY(makespan >= std::max(longest, shared) * (1 - 1e-12));
      }
      request.devices = 1;
      const double alone = place("pardnn", *graph, request).makespan_s;
      QVERIFY(std::abs(alone - costs.total_task_s()) <= 1e-9 * alone);
    }
  }

  void tight_memory_moves_tasks_and_fits() {
    const auto graph = held_at_once(20, 1000);
    PlacementRequest request;
    request.devices = 4;
    for (const char* name : {"pardnn", "pardnn-published"}) {
      request.memory_limit = kUnlimitedBytes;
      const auto free = place(name, *graph, request);
      const auto peak = *std::max_element(free.peak_bytes.begin(), free.peak_bytes.end());
      request.memory_limit = peak * 6 / 10;
      const auto tight = place(name, *graph, request);
      QVERIFY2(tight.fits(), name);
      QVERIFY(*std::max_element(tight.peak_bytes.begin(), tight.peak_bytes.end()) <= request.memory_limit);
    }
    // Without a limit one device is best here, so all that is elsewhere was moved for memory's sake.
    request.memory_limit = 12000;
    const auto moved = place("pardnn", *graph, request);
    QVERIFY(moved.fits());
  }

  /// What is told to be moved is what differs.
  void layered_graphs_under_95_percent() {
    int compared = 0;
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      const auto contention = seed % 2 ? TaskLinks::Contention::sender : TaskLinks::Contention::none;
      const auto graph = test::layered_graph(test::layered_dag(2500, seed), 1, contention);
      // As printed, memory comes last, so that the moves are those from the answer without a limit to the one with it.
      for (const char* method : {"pardnn", "pardnn-published"}) {
        PlacementRequest request;
        request.devices = 2;
        const auto free = place(method, *graph, request);
        request.memory_limit =
            std::int64_t(double(*std::max_element(free.peak_bytes.begin(), free.peak_bytes.end())) * 0.95);
        const auto tight = place(method, *graph, request);
        QVERIFY(tight.fits() || method != std::string("pardnn"));
        if (method == std::string("pardnn") || !tight.fits()) continue;
        QCOMPARE(tight.stages.back().name, std::string("memory"));
        QVERIFY(tight.moved_tasks > 0);
        ++compared;
        std::size_t differ = 0;
        for (std::size_t t = 0; t < graph->task_count(); ++t)
          differ += free.placement.device[t] != tight.placement.device[t];
        QCOMPARE(tight.moved_tasks, differ);
      }
    }
    QVERIFY(compared > 0);
  }

  void what_cannot_fit_says_where() {
    TaskGraphBuilder b;
    TaskGraphBuilder::Task task;
    task.time_s = 1;
    b.add_task(task);
    task.workspace_bytes = 700;
    task.persistent_bytes = 100;
    b.add_task(task);
    b.add_edge(0, 1, 0);
    const auto graph = *b.finish("too large");
    PlacementRequest request;
    request.devices = 2;
    request.memory_limit = 500;
    for (const char* name : {"pardnn", "pardnn-published", "heft", "round-robin"}) {
      const auto result = place(name, *graph, request);
      QVERIFY(!result.fits());
      QCOMPARE(result.shortage->bytes, std::int64_t(300));
      QCOMPARE(result.shortage->device, result.placement.device[1]);
      QCOMPARE(result.shortage->time_s, 1.0);
      QVERIFY(describe(*result.shortage).find(" lacks " + format_bytes(300) + " at " + format_seconds(1)) !=
              std::string::npos);
    }
  }

  /// The ledger before any move is the simulator's memory, bucket by bucket; what it says a move changes is what a
  /// recount of all lives says.
  void ledger_counts_lives() {
    for (int seed = 0; seed < 100; ++seed) {
      const auto graph = test::random_task_graph(std::uint64_t(seed), 20);
      Placement placement;
      placement.devices = 3;
      test::Draw draw{std::uint64_t(seed) + 1000};
      for (std::size_t t = 0; t < 20; ++t) placement.device.push_back(draw.below(3));
      const auto simulation = simulate(*graph, placement, true);
      pardnn::MemoryLedger ledger(*graph, placement, *simulation);
      for (std::uint32_t d = 0; d < 3; ++d) {
        std::int64_t highest = 0;
        for (std::uint32_t b = 0; b < ledger.buckets(); ++b) highest = std::max(highest, ledger.level(d, b));
        QVERIFY(highest >= simulation->devices[d].peak_bytes);
      }
      // There and back again changes nothing that was not rounded up.
      const TaskIndex task = draw.below(20);
      const std::uint32_t from = placement.device[task], to = (from + 1) % 3;
      std::vector<std::int64_t> before;
      for (std::uint32_t d = 0; d < 3; ++d)
        for (std::uint32_t b = 0; b < ledger.buckets(); ++b) before.push_back(ledger.level(d, b));
      for (const std::uint32_t goal : {to, from}) {
        const auto changes = ledger.changes({task}, goal);
        ledger.apply({task}, goal, changes);
      }
      std::size_t at = 0;
      for (std::uint32_t d = 0; d < 3; ++d)
        for (std::uint32_t b = 0; b < ledger.buckets(); ++b) QVERIFY(ledger.level(d, b) >= before[at++]);
      QCOMPARE(ledger.device(), placement.device);
    }
  }

  /// As long as times stay, no move makes all devices together hold less; and what is held at once is all counted.
  void what_is_held_at_least_is_held_wherever_tasks_run() {
    for (int seed = 0; seed < 200; ++seed) {
      const auto graph = test::random_task_graph(std::uint64_t(seed), 30);
      Placement placement;
      placement.devices = 3;
      test::Draw draw{std::uint64_t(seed) + 2000};
      for (std::size_t t = 0; t < 30; ++t) placement.device.push_back(draw.below(3));
      const auto simulation = simulate(*graph, placement, true);
      pardnn::MemoryLedger ledger(*graph, placement, *simulation);
      const double least = ledger.least_total();
      for (int move = 0; move < 60; ++move) {
        double most = 0;
        for (std::uint32_t b = 0; b < ledger.buckets(); ++b) {
          double held = 0;
          for (std::uint32_t d = 0; d < 3; ++d) held += double(ledger.level(d, b));
          most = std::max(most, held);
        }
        QVERIFY2(least <= most, qPrintable(QString("%1, move %2").arg(seed).arg(move)));
        const TaskIndex task = draw.below(30);
        const std::uint32_t to = (ledger.device()[task] + 1 + draw.below(2)) % 3;
        const auto changes = ledger.changes({task}, to);
        ledger.apply({task}, to, changes);
        QCOMPARE(ledger.least_total(), least);
      }
    }
    const auto graph = held_at_once(20, 1000);
    Placement placement;
    placement.devices = 2;
    placement.device.assign(graph->task_count(), 1);
    const auto simulation = simulate(*graph, placement, true);
    QCOMPARE(pardnn::MemoryLedger(*graph, placement, *simulation).least_total(), 20000.0);
  }

  /// What lacks more than it competes with, however tasks are moved, is left as it is; what may still win is not.
  void memory_that_cannot_be_found_is_not_looked_for() {
    const auto graph = held_at_once(20, 1000);
    PlacementRequest request;
    request.devices = 2;
    request.memory_limit = 8000;
    const ScheduleCosts costs(*graph, 2);
    Judge judge(*graph, request);
    pardnn::Judged all_on_one;
    all_on_one.placement.devices = 2;
    all_on_one.placement.device.assign(graph->task_count(), 0);
    all_on_one.verdict = *judge.measure(all_on_one.placement);
    judge.keep_order(all_on_one.placement);
    QCOMPARE(all_on_one.verdict.missing_bytes, std::int64_t(12000));
    // The two devices together lack 4,000 bytes.
    for (const std::int64_t beat : {std::int64_t(0), std::int64_t(4000), std::int64_t(4001), kUnlimitedBytes}) {
      pardnn::Judged candidate = all_on_one;
      pardnn::MemoryOptions options;
      options.beat = beat;
      QVERIFY(pardnn::fit_memory(costs, judge, request, options, candidate, {}));
      QCOMPARE(candidate.moved > 0, beat > 4000);
      QCOMPARE(candidate.verdict.missing_bytes<12000, beat> 4000);
    }
    // Where they have enough, what does not fit yet is made to, however good the others are.
    request.memory_limit = 12000;
    all_on_one.verdict = *judge.measure(all_on_one.placement);
    pardnn::MemoryOptions options;
    options.beat = 0;
    QVERIFY(pardnn::fit_memory(costs, judge, request, options, all_on_one, {}));
    QVERIFY(!all_on_one.verdict.shortage);
    QVERIFY(all_on_one.moved > 0);
  }

  /// As the figures of the worked case are; and no placement of any graph ends sooner, also on unlike devices.
  void no_placement_ends_before_its_bound() {
    const auto worked = worked_case();
    const double figures[] = {17, 11, 11};
    for (const std::uint32_t devices : {1, 2, 3})
      QVERIFY(std::abs(least_makespan_s(*worked, devices) - figures[devices - 1]) < 1e-6);
    for (int seed = 0; seed < 300; ++seed) {
      test::Draw draw{std::uint64_t(seed) + 3000};
      const auto graph = test::random_task_graph(std::uint64_t(seed), 1 + std::size_t(seed % 40), [&](auto& builder) {
        if (seed % 2) builder.devices = {{kUnlimitedBytes, 2}, {kUnlimitedBytes, 0.5}, {kUnlimitedBytes, 1}};
      });
      Placement placement;
      placement.devices = 1 + std::uint32_t(seed) % 3;
      for (std::size_t t = 0; t < graph->task_count(); ++t) placement.device.push_back(draw.below(placement.devices));
      QVERIFY(least_makespan_s(*graph, placement.devices) <= simulate(*graph, placement)->makespan_s);
    }
  }

  /// The memory stage of a seed is one, too.
  void what_a_seed_moved_is_told() {
    const auto graph = test::layered_graph(test::layered_dag(11744, 1));
    PlacementRequest request;
    request.devices = 16;
    const auto free = place("pardnn", *graph, request);
    request.memory_limit =
        std::int64_t(double(*std::max_element(free.peak_bytes.begin(), free.peak_bytes.end())) * 0.95);
    const auto tight = place("pardnn", *graph, request);
    const auto printed = place("pardnn-published", *graph, request);
    QVERIFY(tight.fits());
    QVERIFY2(tight.origin.starts_with("ParDNN as printed"), tight.origin.c_str());
    QVERIFY(printed.moved_tasks > 0);
    QCOMPARE(tight.moved_tasks, printed.moved_tasks);
  }

  void same_answer_on_any_number_of_threads() {
    const auto graph = test::layered_graph(test::layered_dag(1500, 2));
    for (const placement::Objective objective : {placement::Objective::makespan, placement::Objective::max_load}) {
      PlacementRequest request;
      request.devices = 6;
      request.objective = objective;
      request.memory_limit = 200'000'000;
      const auto one = place("pardnn", *graph, request, 1);
      for (const int threads : {2, 8}) {
        const auto many = place("pardnn", *graph, request, threads);
        QCOMPARE(many.placement.device, one.placement.device);
        QCOMPARE(many.placement.order, one.placement.order);
      }
    }
  }

  void cancels_within_a_tenth_of_a_second() {
    const auto graph = test::layered_graph(test::layered_dag(187742, 1));
    PlacementRequest request;
    request.devices = 16;
    request.memory_limit = 9'000'000'000;
    for (const char* name : {"pardnn", "pardnn-published", "heft"})
      for (const int wait_ms : {0, 60, 300, 700}) {
        std::stop_source source;
        RunContext context;
        context.stop = source.get_token();
        context.threads = 2;
        std::int64_t asked = 0;
        const turnpoint::test::ProcessorClock clock;
        std::thread stopper([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
          asked = clock.elapsed();
          source.request_stop();
        });
        const auto result = try_place(name, *graph, request, context);
        const std::int64_t ended = clock.elapsed();
        stopper.join();
        if (result && !stopped_early(*result)) continue;
        QVERIFY(result || result.error().code == ErrorCode::cancelled);
        // What both threads computed after they were told to stop.
        QVERIFY2(ended - asked < 200 * turnpoint::test::kSanitizerFactor,
                 qPrintable(QString("%1: %2 ms").arg(name).arg(ended - asked)));
      }
  }
};

QTEST_APPLESS_MAIN(PardnnTest)
#include "pardnn_test.moc"
