// SPDX-License-Identifier: Apache-2.0
// List scheduling and refinement on graphs small enough to be worked by hand: what a sender, a gap, a device's room and
// the critical path decide.
#include <QtTest>

#include "core/search/pardnn/refinement.h"
#include "core/search/placement/list_schedule.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::placement;

namespace {

/// Links of one byte a second without latency, so that bytes are seconds.
class Graph {
 public:
  Graph() {
    builder_.links.bandwidth = 1;
    builder_.links.latency = 0;
  }
  TaskIndex task(const std::string& name, double time_s, std::int64_t output_bytes = 0, std::int64_t persistent = 0,
                 const char* group = nullptr) {
    TaskGraphBuilder::Task task;
    task.name = name;
    task.time_s = time_s;
    task.output_bytes = output_bytes;
    task.persistent_bytes = persistent;
    if (group) task.colocate = builder_.group(group);
    return builder_.add_task(task);
  }
  void edge(TaskIndex from, TaskIndex to) { builder_.add_edge(from, to); }
  void speeds(const std::vector<double>& speeds) {
    for (const double speed : speeds) builder_.devices.push_back({kUnlimitedBytes, speed});
  }
  TaskGraphPtr finish() {
    auto graph = builder_.finish("by hand");
    if (!graph) qFatal("%s", graph.error().message().c_str());
    return *graph;
  }

 private:
  TaskGraphBuilder builder_;
};

placement::Schedule schedule_in_order(const TaskGraph& graph, std::uint32_t devices, const ListOptions& options) {
  const ScheduleCosts costs(graph, devices);
  return list_schedule(costs, graph.topological, options, {});
}

}  // namespace

class ListScheduleTest : public QObject {
  Q_OBJECT

 private slots:
  /// A device sends one tensor after the other, and each to a device once.
  void a_sender_sends_one_tensor_after_the_other() {
    Graph g;
    const TaskIndex first = g.task("first", 1, 3), second = g.task("second", 1, 1), near = g.task("near", 1),
                    twin = g.task("twin", 1), far = g.task("far", 1);
    g.edge(first, near);
    g.edge(first, twin);
    g.edge(second, far);
    const auto graph = g.finish();
    const std::vector<std::uint32_t> device = {0, 0, 1, 1, 2};
    ListOptions options;
    options.fixed = &device;
    const placement::Schedule schedule = schedule_in_order(*graph, 3, options);
    QCOMPARE(schedule.start_s[near], 4.0);  // 1 to compute, 3 on its way
    QCOMPARE(schedule.start_s[twin], 5.0);  // the tensor is there, the device is busy
    QCOMPARE(schedule.start_s[far], 5.0);   // made at 2, sent from 4 on
    QCOMPARE(schedule.makespan_s, simulate(*graph, schedule.placement)->makespan_s);
  }

  /// The same where every device may be chosen: sending to another one costs the wait for the sender.
  void a_busy_sender_keeps_tasks_at_home() {
    Graph g;
    const TaskIndex first = g.task("first", 1, 6), second = g.task("second", 1, 2), away = g.task("away", 20),
                    choice = g.task("choice", 1);
    g.edge(first, away);
    g.edge(second, choice);
    const auto graph = g.finish();
    const std::vector<std::uint32_t> device = {0, 0, 1, kNone};
    ListOptions options;
    options.fixed = &device;
    const placement::Schedule schedule = schedule_in_order(*graph, 2, options);
    QCOMPARE(schedule.placement.device[choice], 0u);
    QCOMPARE(schedule.start_s[choice], 2.0);
    QCOMPARE(schedule.start_s[away], 7.0);
  }

  void a_task_fills_a_gap_of_its_own_length() {
    Graph g;
    const TaskIndex before = g.task("before", 1), other = g.task("other", 2, 1), after = g.task("after", 1),
                    filler = g.task("filler", 2), too_long = g.task("too long", 2.5);
    g.edge(other, after);
    const auto graph = g.finish();
    const std::vector<std::uint32_t> device = {0, 1, 0, 0, 0};
    ListOptions options;
    options.fixed = &device;
    options.insertion = true;
    const placement::Schedule schedule = schedule_in_order(*graph, 2, options);
    QCOMPARE(schedule.end_s[before], 1.0);
    QCOMPARE(schedule.start_s[after], 3.0);
    QCOMPARE(schedule.start_s[filler], 1.0);
    QCOMPARE(schedule.start_s[too_long], 4.0);
    QCOMPARE(schedule.makespan_s, 6.5);
  }

  void room_that_is_taken_is_taken() {
    Graph g;
    g.speeds({1, 0.1});
    const TaskIndex first = g.task("first", 1, 0, 8), second = g.task("second", 1, 0, 8), third = g.task("third", 1);
    const auto graph = g.finish();
    const std::vector<std::int64_t> room = {10, 10};
    ListOptions options;
    options.room = &room;
    const placement::Schedule schedule = schedule_in_order(*graph, 2, options);
    QCOMPARE(schedule.placement.device[first], 0u);
    QCOMPARE(schedule.placement.device[second], 1u);  // ten times slower, but with room
    QCOMPARE(schedule.placement.device[third], 0u);   // needs none
  }

  void a_group_goes_where_all_of_it_has_room() {
    Graph g;
    g.speeds({1, 0.1});
    const TaskIndex head = g.task("head", 1, 0, 2, "layer"), tail = g.task("tail", 1, 0, 8, "layer");
    const auto graph = g.finish();
    const std::vector<std::int64_t> room = {9, 10};
    ListOptions options;
    options.room = &room;
    const placement::Schedule schedule = schedule_in_order(*graph, 2, options);
    QCOMPARE(schedule.placement.device[head], 1u);
    QCOMPARE(schedule.placement.device[tail], 1u);
  }

  void levels_count_transfers() {
    Graph g;
    const TaskIndex a = g.task("a", 1, 5), b = g.task("b", 2, 7), c = g.task("c", 3);
    g.edge(a, b);
    g.edge(b, c);
    const auto graph = g.finish();
    const ScheduleCosts costs(*graph, 2);
    QCOMPARE(bottom_levels(costs, 1.0)[a], 1.0 + 5 + 2 + 7 + 3);
    QCOMPARE(bottom_levels(costs, 0.0)[a], 6.0);
    QCOMPARE(top_levels(costs, 1.0)[c], 1.0 + 5 + 2 + 7);
    const std::vector<std::uint32_t> device = {0, 0, 1};
    QCOMPARE(bottom_levels(costs, 1.0, &device)[a], 1.0 + 2 + 7 + 3);
    QCOMPARE(top_levels(costs, 1.0, &device)[b], 1.0);
  }

  /// A task between two devices that waits for the larger of two tensors: only the critical path leads to it.
  void the_critical_path_moves_what_waits() {
    Graph g;
    const TaskIndex large = g.task("large", 1, 20), small = g.task("small", 1, 1), waits = g.task("waits", 1, 4),
                    stays = g.task("stays", 2);
    g.edge(large, waits);
    g.edge(large, stays);
    g.edge(small, waits);
    for (const char* result : {"left", "right"}) g.edge(waits, g.task(result, 1, 1));
    const auto graph = g.finish();
    const ScheduleCosts costs(*graph, 2);
    PlacementRequest request;
    request.devices = 2;
    Judge judge(*graph, request);
    pardnn::Judged candidate;
    candidate.placement.devices = 2;
    candidate.placement.device = {0, 1, 1, 0, 1, 1};
    candidate.verdict = *judge.measure(candidate.placement);
    QCOMPARE(candidate.verdict.makespan_s, 1.0 + 20 + 1 + 1 + 1);
    QVERIFY(pardnn::refine(costs, nullptr, judge, {}, candidate, {}).has_value());
    QCOMPARE(candidate.placement.device[waits], candidate.placement.device[large]);
    QCOMPARE(candidate.placement.device[stays], candidate.placement.device[large]);
    QVERIFY(candidate.verdict.makespan_s <= 10.0);  // behind what stays; then its tensor, and two results one after the other
    QCOMPARE(candidate.verdict.makespan_s, judge.measure(candidate.placement)->makespan_s);
  }

  /// Refinement neither slows a placement down nor gives up that it fits.
  void refinement_keeps_what_is_good() {
    int faster = 0, tempted = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const auto graph = test::random_task_graph(seed, 24);
      const ScheduleCosts costs(*graph, 3);
      test::Draw draw(seed + 1000);
      Placement start;
      start.devices = 3;
      std::vector<std::uint32_t> of_group(graph->groups.size(), kNone);
      for (TaskIndex t = 0; t < graph->task_count(); ++t) {
        std::uint32_t device = draw.below(3);
        if (const std::uint32_t group = graph->colocate[t]; group != kNone) {
          if (of_group[group] == kNone) of_group[group] = device;
          device = of_group[group];
        }
        start.device.push_back(device);
      }
      const auto refined = [&](std::int64_t limit) {
        PlacementRequest request;
        request.devices = 3;
        request.memory_limit = limit;
        Judge judge(*graph, request);
        pardnn::Judged candidate{start, *judge.measure(start)};
        const double before = candidate.verdict.makespan_s;
        const bool fitted = !candidate.verdict.shortage;
        if (!pardnn::refine(costs, nullptr, judge, {}, candidate, {})) qFatal("refinement failed");
        const auto verdict = judge.measure(candidate.placement);
        if (verdict->makespan_s > before || (fitted && verdict->shortage)) qFatal("seed %d: worse", int(seed));
        return *verdict;
      };
      const Verdict free = refined(kUnlimitedBytes);
      PlacementRequest request;
      request.devices = 3;
      Judge judge(*graph, request);
      const Verdict before = *judge.measure(start);
      const std::int64_t peak = *std::max_element(before.peak_bytes.begin(), before.peak_bytes.end());
      const Verdict limited = refined(peak);
      faster += free.makespan_s < before.makespan_s;
      tempted += limited.makespan_s > free.makespan_s;
    }
    QVERIFY2(faster > 100, qPrintable(QString::number(faster)));
    QVERIFY2(tempted > 10, qPrintable(QString::number(tempted)));  // more memory would have been faster
  }
};

QTEST_APPLESS_MAIN(ListScheduleTest)
#include "list_schedule_test.moc"
