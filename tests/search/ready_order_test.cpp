// SPDX-License-Identifier: Apache-2.0
// Devices that run what is ready, on graphs worked by hand; how many calls an improving stage has; and that it begins
// at several placements.
#include <QtTest>

#include "core/search/annealing/annealing_methods.h"
#include "core/search/pardnn/ready_order.h"
#include "core/search/placement_registry.h"
#include "search/small_graphs.h"
#include "simulation/layered_dag.h"

using namespace turnpoint;
using placement::Judge;
using placement::PlacementRequest;

namespace {

struct Item {
  double time_s;
  std::int64_t output_bytes = 0, workspace_bytes = 0;
};

/// Links of one byte a second, so that bytes are seconds.
TaskGraphPtr graph_of(const std::vector<Item>& items, const std::vector<std::pair<int, int>>& edges) {
  TaskGraphBuilder b;
  b.links.bandwidth = 1;
  for (const Item& item : items) {
    TaskGraphBuilder::Task task;
    task.time_s = item.time_s;
    task.output_bytes = item.output_bytes;
    task.workspace_bytes = item.workspace_bytes;
    b.add_task(task);
  }
  for (const auto& [from, to] : edges) b.add_edge(from, to);
  return *b.finish("by hand");
}

pardnn::Judged judged(Judge& judge, Placement placement) {
  pardnn::Judged made;
  made.verdict = *judge.measure(placement);
  made.placement = std::move(placement);
  made.origin = "by hand";
  return made;
}

PlacementRequest on_two(std::int64_t limit = 0) {
  PlacementRequest request;
  request.devices = 2;
  if (limit > 0) request.memory_limit = limit;
  return request;
}

/// n tasks in a row that nothing joins.
TaskGraphPtr loose(std::size_t n) { return graph_of(std::vector<Item>(n, Item{1}), {}); }

}  // namespace

class ReadyOrderTest : public QObject {
  Q_OBJECT

 private slots:
  /// What comes late, at 3, is not waited for: 3 s of another task are done by then.
  void what_is_ready_goes_before_what_is_late() {
    const auto graph = graph_of({{1, 2}, {1}, {3}}, {{0, 1}});
    const placement::ScheduleCosts costs(*graph, 2);
    const PlacementRequest request = on_two();
    Judge judge(*graph, request);
    for (const pardnn::Ways ways : {pardnn::Ways::all_transfers, pardnn::Ways::both}) {
      pardnn::Judged candidate = judged(judge, {2, {0, 1, 1}, {{0}, {1, 2}}, {}});
      QCOMPARE(candidate.verdict.makespan_s, 7.0);
      QVERIFY(pardnn::run_as_ready(costs, judge, ways, candidate));
      QCOMPARE(candidate.verdict.makespan_s, 4.0);
      QCOMPARE(candidate.placement.order, (std::vector<std::vector<TaskIndex>>{{0}, {2, 1}}));
      QCOMPARE(candidate.origin, std::string("by hand, run as ready"));
      QCOMPARE(judge.measure(candidate.placement)->makespan_s, 4.0);
    }
  }

  /// Of two that are ready the one goes first that another device waits for.
  void what_is_furthest_from_the_end_goes_first() {
    const auto graph = graph_of({{2}, {2}, {3}}, {{1, 2}});
    const placement::ScheduleCosts costs(*graph, 2);
    const PlacementRequest request = on_two();
    Judge judge(*graph, request);
    pardnn::Judged candidate = judged(judge, {2, {0, 0, 1}, {{0, 1}, {2}}, {}});
    QCOMPARE(candidate.verdict.makespan_s, 7.0);
    QVERIFY(pardnn::run_as_ready(costs, judge, pardnn::Ways::both, candidate));
    QCOMPARE(candidate.verdict.makespan_s, 5.0);
    QCOMPARE(candidate.placement.order[0], (std::vector<TaskIndex>{1, 0}));
  }

  /// The same can be what is slower: 10 s that are ready go before the second that another device waits for.
  void an_order_that_is_faster_stays() {
    const auto graph = graph_of({{1, 1}, {1, 1}, {10}, {10}}, {{0, 1}, {1, 2}});
    const placement::ScheduleCosts costs(*graph, 2);
    const PlacementRequest request = on_two();
    Judge judge(*graph, request);
    pardnn::Judged candidate = judged(judge, {2, {0, 1, 0, 1}, {{0, 2}, {1, 3}}, {}});
    QCOMPARE(candidate.verdict.makespan_s, 14.0);
    QVERIFY(pardnn::run_as_ready(costs, judge, pardnn::Ways::both, candidate));
    QCOMPARE(candidate.verdict.makespan_s, 14.0);
    QCOMPARE(candidate.placement.order[1], (std::vector<TaskIndex>{1, 3}));
    QCOMPARE(candidate.origin, std::string("by hand"));
  }

  /// What is ready works in 10 bytes while the 2 that came meanwhile wait.
  void what_fits_is_not_given_up_for_time() {
    const auto graph = graph_of({{1, 2}, {1}, {4, 0, 10}}, {{0, 1}});
    const placement::ScheduleCosts costs(*graph, 2);
    for (const std::int64_t limit : {11, 12}) {
      const PlacementRequest request = on_two(limit);
      Judge judge(*graph, request);
      pardnn::Judged candidate = judged(judge, {2, {0, 1, 1}, {{0}, {1, 2}}, {}});
      QCOMPARE(candidate.verdict.makespan_s, 8.0);
      QVERIFY(!candidate.verdict.shortage);
      QVERIFY(pardnn::run_as_ready(costs, judge, pardnn::Ways::both, candidate));
      QVERIFY(!candidate.verdict.shortage);
      QCOMPARE(candidate.verdict.makespan_s, limit == 11 ? 8.0 : 5.0);
    }
  }

  /// About a second up to 5,000 tasks, two from 10,000 on, nothing where it would be fewer than a hundred placements.
  void calls_of_an_improving_stage() {
    QCOMPARE(annealing::stage_calls(*loose(100)), std::uint64_t(5000));
    QCOMPARE(annealing::stage_calls(*loose(5000)), std::uint64_t(3999));
    QCOMPARE(annealing::stage_calls(*loose(10000)), std::uint64_t(3999));
    QCOMPARE(annealing::stage_calls(*loose(20000)), std::uint64_t(1999));
    QVERIFY(annealing::stage_calls(*loose(399000)) >= 100);
    QCOMPARE(annealing::stage_calls(*loose(401000)), std::uint64_t(0));
  }

  /// From one device 60 calls lead nowhere near; what is handed over beside it is where to begin.
  void an_improving_stage_begins_at_several_placements() {
    const auto graph = test::layered_graph(test::layered_dag(800, 1));
    PlacementRequest request;
    request.devices = 4;
    const auto good = placement::run_placement(**placement::find_placement_method("pardnn"), *graph, request, {});
    QVERIFY(good.has_value());
    const placement::ScheduleCosts costs(*graph, 4);
    const auto from_one_device = [&](const std::vector<const Placement*>& others, std::size_t begins) {
      Judge judge(*graph, request);
      Placement placement{4, std::vector<std::uint32_t>(graph->task_count(), 0), {}, {}};
      placement::Verdict verdict = *judge.measure(placement);
      const auto begun = annealing::improve(costs, judge, request, 220, others, placement, verdict, {});
      // What is told is what it is worth, and where it began.
      const bool told = begun && *begun == begins && judge.measure(placement)->makespan_s == verdict.makespan_s;
      return told ? verdict.makespan_s : 0;
    };
    const double alone = from_one_device({}, 0), together = from_one_device({&good->placement}, 1);
    QVERIFY(alone > 1.2 * good->makespan_s);
    QVERIFY2(together > 0 && together <= 1.02 * good->makespan_s, std::to_string(together / good->makespan_s).c_str());
  }
};

QTEST_GUILESS_MAIN(ReadyOrderTest)
#include "ready_order_test.moc"
