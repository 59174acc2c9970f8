// SPDX-License-Identifier: Apache-2.0
// The simulator against worked cases and against a literal, slow transcription of its rules on random graphs.
#include "core/simulation/simulator.h"

#include <QtTest>
#include <random>

#include "simulation/layered_dag.h"
#include "simulation/slow_simulation.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct Edge {
  int from, to;
  std::int64_t bytes = TaskGraphBuilder::kProducerBytes;
};

TaskGraphPtr make_graph(const std::vector<double>& times, const std::vector<std::int64_t>& outputs,
                        const std::vector<Edge>& edges, double bandwidth = 1, double latency = 0) {
  TaskGraphBuilder builder;
  for (std::size_t i = 0; i < times.size(); ++i) {
    TaskGraphBuilder::Task task;
    const std::string name(1, char('a' + int(i)));
    task.name = name;
    task.time_s = times[i];
    task.output_bytes = outputs[i];
    builder.add_task(task);
  }
  for (const auto& e : edges) builder.add_edge(e.from, e.to, e.bytes);
  builder.links.bandwidth = bandwidth;
  builder.links.latency = latency;
  auto graph = builder.finish("test");
  return graph ? *graph : nullptr;
}

Placement on(std::uint32_t devices, std::vector<std::uint32_t> device) {
  Placement placement;
  placement.devices = devices;
  placement.device = std::move(device);
  return placement;
}

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }

/// Times and bytes from a few values, so that equal instants, zero lengths and empty transfers are frequent.
TaskGraphPtr random_graph(Random& random, std::uint32_t devices) {
  TaskGraphBuilder builder;
  const std::size_t tasks = 1 + below(random, 24);
  const double times[] = {0, 0, 1, 1, 2, 3, 0.5, 1e-30};
  const std::int64_t sizes[] = {0, 0, 1, 2, 4, 7};
  const auto pick = [&](const auto& values) { return values[below(random, std::size(values))]; };
  for (std::size_t t = 0; t < tasks; ++t) {
    TaskGraphBuilder::Task task;
    task.name = "x";
    task.time_s = below(random, 4) ? pick(times) : double(below(random, 1000)) / 7;
    task.output_bytes = pick(sizes);
    task.persistent_bytes = pick(sizes);
    task.workspace_bytes = pick(sizes);
    builder.add_task(task);
  }
  const bool timed = below(random, 8) == 0;
  const std::uint64_t tensors = below(random, 2) ? 1 : 3;
  std::vector<std::uint32_t> rank(tasks);  // ids are not a topological order
  for (std::size_t t = 0; t < tasks; ++t) rank[t] = std::uint32_t(t);
  std::shuffle(rank.begin(), rank.end(), random);
  for (std::size_t k = below(random, 3 * tasks); k > 0; --k) {
    const std::size_t a = below(random, tasks), b = below(random, tasks);
    if (a == b) continue;
    const bool forward = rank[a] < rank[b];
    builder.add_tensor(std::int64_t(forward ? a : b), std::int64_t(forward ? b : a),
                       std::uint32_t(below(random, tensors)),
                       below(random, 2) ? pick(sizes) : TaskGraphBuilder::kProducerBytes,
                       timed ? pick(times) : TaskGraphBuilder::kNoSeconds);
  }
  const double bandwidths[] = {1, 2, 0.5, 3}, latencies[] = {0, 0, 1, 0.25};
  builder.links.bandwidth = pick(bandwidths);
  builder.links.latency = pick(latencies);
  if (below(random, 3) == 0) builder.links.contention = TaskLinks::Contention::none;
  if (below(random, 3) == 0) {
    builder.links.size = devices;
    for (std::uint32_t i = 0; i < devices * devices; ++i) {
      builder.links.bandwidths.push_back(pick(bandwidths));
      builder.links.latencies.push_back(pick(latencies));
    }
    if (below(random, 2)) builder.links.latencies.clear();
  }
  if (below(random, 3) == 0)
    for (std::uint32_t d = 0; d < devices; ++d) builder.devices.push_back({kUnlimitedBytes, pick(bandwidths)});
  auto graph = builder.finish("random");
  return graph ? *graph : nullptr;
}

Placement random_placement(Random& random, const TaskGraph& graph, std::uint32_t devices) {
  Placement placement;
  placement.devices = devices;
  for (std::size_t t = 0; t < graph.task_count(); ++t)
    placement.device.push_back(std::uint32_t(below(random, devices)));
  if (below(random, 3)) return placement;
  placement.order.resize(devices);
  const bool possible = below(random, 4) != 0;
  std::vector<TaskIndex> all = graph.topological;
  if (!possible) std::shuffle(all.begin(), all.end(), random);
  for (const TaskIndex t : all) placement.order[placement.device[t]].push_back(t);
  return placement;
}

/// What differs between the simulator and the transcription; empty if nothing does.
std::string difference(const TaskGraph& graph, const Placement& placement) {
  const SlowResult slow = SlowSimulation(graph, placement).run();
  const auto fast = simulate(graph, placement, true);
  if (bool(fast) != slow.finished) return fast ? "finished" : fast.error().message();
  if (!fast) return fast.error().what.find("never finish") == std::string::npos ? fast.error().what : std::string();
  if (fast->makespan_s != slow.makespan) return fmt::format("makespan {} {}", fast->makespan_s, slow.makespan);
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    if (fast->start_s[t] != slow.start[t] || fast->end_s[t] != slow.end[t])
      return fmt::format("task {}: {} to {} instead of {} to {}", t, fast->start_s[t], fast->end_s[t], slow.start[t],
                         slow.end[t]);
  if (fast->transfers.size() != slow.transfers.size()) return "transfers";
  auto expected = slow.transfers.begin();
  for (const auto& transfer : fast->transfers) {
    if (std::pair(transfer.source, transfer.to) != expected->first ||
        std::pair(transfer.start_s, transfer.end_s) != expected->second)
      return fmt::format("transfer of {} to {}", transfer.source, transfer.to);
    ++expected;
  }
  for (std::uint32_t d = 0; d < placement.devices; ++d) {
    if (fast->devices[d].peak_bytes != slow.peak[d])
      return fmt::format("peak of device {}: {} instead of {}", d, fast->devices[d].peak_bytes, slow.peak[d]);
    if (fast->devices[d].peak_at_s != slow.peak_at[d])
      return fmt::format("peak of device {} at {} instead of {}", d, fast->devices[d].peak_at_s, slow.peak_at[d]);
    if (std::abs(fast->devices[d].busy_s - slow.busy[d]) > 1e-9 * slow.busy[d]) return "busy";
    std::int64_t highest = fast->devices[d].persistent_bytes;
    for (const auto& sample : fast->memory[d])
      highest = std::max(highest, fast->devices[d].persistent_bytes + sample.activation_bytes + sample.copy_bytes +
                                      sample.workspace_bytes);
    if (highest != fast->devices[d].peak_bytes) return "samples do not reach the peak";
  }
  return {};
}

/// What is wrong with a critical path; empty if nothing is.
std::string broken_path(const TaskGraph& graph, const Placement& placement) {
  const auto simulation = simulate(graph, placement);
  if (!simulation) return {};
  const auto path = critical_path(graph, placement, *simulation);
  double at = 0;
  for (const auto& step : path) {
    const double start = step.is_transfer ? simulation->transfers[step.index].start_s : simulation->start_s[step.index];
    if (start != at) return fmt::format("a step starts at {} instead of {}", start, at);
    at = step.is_transfer ? simulation->transfers[step.index].end_s : simulation->end_s[step.index];
  }
  return at == simulation->makespan_s ? std::string() : "does not end at the makespan";
}

}  // namespace

class SimulatorTest : public QObject {
  Q_OBJECT

 private slots:
  void two_devices_and_back() {
    // Out sizes 100 and 50 bytes at 50 bytes per second.
    const auto graph = make_graph({3, 2, 4, 1}, {100, 0, 50, 0}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}, 50);
    const auto placement = on(2, {0, 0, 1, 0});
    const auto result = simulate(*graph, placement);
    QVERIFY(result);
    QCOMPARE(result->makespan_s, 11.0);
    QCOMPARE(result->start_s, (std::vector<double>{0, 3, 5, 10}));
    QCOMPARE(result->transfers.size(), std::size_t(2));
    QCOMPARE(result->transfers[0].start_s, 3.0);
    QCOMPARE(result->transfers[0].end_s, 5.0);
    QCOMPARE(result->transfers[1].start_s, 9.0);
    QCOMPARE(result->transfers[1].end_s, 10.0);
    QCOMPARE(result->devices[0].sent_bytes, std::int64_t(100));
    QCOMPARE(result->devices[1].sent_bytes, std::int64_t(50));
    QCOMPARE(result->devices[0].busy_s, 6.0);
    const auto alone = simulate(*graph, on(1, {0, 0, 0, 0}));
    QCOMPARE(alone->makespan_s, 10.0);

    const auto path = critical_path(*graph, placement, *result);
    QCOMPARE(path.size(), std::size_t(5));  // a, its transfer, c, its transfer, d
    QVERIFY(path[1].is_transfer && path[3].is_transfer);
    QCOMPARE(path[2].index, 2u);
  }

  void fan_out_waits_for_the_sender() {
    const auto graph = make_graph({3, 2, 4, 4}, {100, 0, 0, 0}, {{0, 1}, {0, 2}, {0, 3}}, 50);
    const auto result = simulate(*graph, on(3, {0, 0, 1, 2}));
    QCOMPARE(result->makespan_s, 11.0);
    QCOMPARE(result->start_s, (std::vector<double>{0, 3, 5, 7}));
    QCOMPARE(result->devices[0].sent_bytes, std::int64_t(200));
    QCOMPARE(result->devices[0].send_s, 4.0);
  }

  void seven_tasks_on_two_devices() {
    // A B C D E F G; edges cost what their bytes say at one byte per second.
    const auto graph =
        make_graph({2, 3, 4, 1, 2, 3, 2}, {0, 0, 0, 0, 0, 0, 0},
                   {{0, 1, 1}, {0, 2, 2}, {0, 3, 1}, {1, 4, 1}, {2, 5, 2}, {3, 5, 1}, {4, 6, 1}, {5, 6, 1}});
    const auto first = simulate(*graph, on(2, {0, 1, 0, 0, 1, 0, 0}));
    QCOMPARE(first->makespan_s, 12.0);
    QCOMPARE(first->start_s, (std::vector<double>{0, 3, 2, 6, 6, 7, 10}));
    QCOMPARE(simulate(*graph, on(2, {0, 1, 0, 1, 1, 0, 0}))->makespan_s, 13.0);
    QCOMPARE(simulate(*graph, on(1, {0, 0, 0, 0, 0, 0, 0}))->makespan_s, 17.0);
  }

  void memory_by_order() {
    // Two orders of the same tasks on one device: peaks 8 and 11 (unit times, sizes A1 B6 C1 D1 E2 F1 G1).
    const auto graph = make_graph({1, 1, 1, 1, 1, 1, 1}, {1, 6, 1, 1, 2, 1, 1},
                                  {{0, 1}, {0, 2}, {2, 3}, {2, 4}, {2, 5}, {3, 5}, {4, 5}, {1, 6}, {5, 6}});
    auto placement = on(1, {0, 0, 0, 0, 0, 0, 0});
    placement.order = {{0, 2, 3, 4, 5, 1, 6}};
    QCOMPARE(simulate(*graph, placement)->devices[0].peak_bytes, std::int64_t(8));
    placement.order = {{0, 1, 2, 3, 4, 5, 6}};
    const auto result = simulate(*graph, placement, true);
    QCOMPARE(result->devices[0].peak_bytes, std::int64_t(11));
    QCOMPARE(result->devices[0].peak_at_s, 5.0);
    QCOMPARE(result->memory[0].size(), std::size_t(7));
  }

  void a_peak_is_where_it_is_first_reached() {
    const auto graph = make_graph({1, 1, 1}, {1, 7, 7}, {{0, 1}, {0, 2}});
    const auto result = simulate(*graph, on(1, {0, 0, 0}));
    QCOMPARE(result->devices[0].peak_bytes, std::int64_t(15));  // results that nobody reads stay to the end
    QCOMPARE(result->devices[0].peak_at_s, 2.0);
    const auto level = make_graph({1, 1, 1}, {7, 0, 7}, {{0, 1}, {1, 2}});
    QCOMPARE(simulate(*level, on(1, {0, 0, 0}))->devices[0].peak_at_s, 0.0);
  }

  void random_graphs_follow_the_rules() {
    Random random(5);
    std::size_t deadlocks = 0, ordered = 0, zero_makespans = 0;
    for (int i = 0; i < 30000; ++i) {
      const auto devices = std::uint32_t(1 + below(random, 5));
      const auto graph = random_graph(random, devices);
      QVERIFY(graph);
      const auto placement = random_placement(random, *graph, devices);
      const std::string found = difference(*graph, placement);
      QVERIFY2(found.empty(), fmt::format("graph {}: {}", i, found).c_str());
      const std::string path = broken_path(*graph, placement);
      QVERIFY2(path.empty(), fmt::format("graph {}: {}", i, path).c_str());
      const auto result = simulate(*graph, placement);
      deadlocks += !result;
      ordered += result && !placement.order.empty();
      zero_makespans += result && result->makespan_s == 0;
    }
    QVERIFY(deadlocks > 100);
    QVERIFY(ordered > 100);
    QVERIFY(zero_makespans > 10);
  }

  /// Large enough for what looks ahead in the graph and for rows, rounds and slots of every length.
  void layered_graphs_follow_the_rules() {
    for (const std::uint32_t devices : {1u, 3u, 16u, 70u}) {
      const auto graph = layered_graph(layered_dag(2500, devices));
      Placement placement;
      placement.devices = devices;
      SplitMix64 random(devices);
      for (std::size_t t = 0; t < graph->task_count(); ++t)
        placement.device.push_back(std::uint32_t(random.below(devices)));
      const std::string found = difference(*graph, placement);
      QVERIFY2(found.empty(), fmt::format("{} devices: {}", devices, found).c_str());
    }
  }

  void bounds_of_any_schedule() {
    Random random(6);
    for (int i = 0; i < 500; ++i) {
      const auto devices = std::uint32_t(1 + below(random, 4));
      const auto graph = random_graph(random, devices);
      auto placement = random_placement(random, *graph, devices);
      placement.order.clear();
      const auto result = simulate(*graph, placement);
      QVERIFY(result);
      double upper = 0, load = 0;
      for (const auto& device : result->devices) load = std::max(load, device.busy_s);
      for (const auto& device : result->devices) upper += device.busy_s + device.send_s;
      QVERIFY(result->makespan_s >= load * (1 - 1e-12));
      QVERIFY(result->makespan_s <= upper * (1 + 1e-12));
      for (std::uint32_t d = 0; d < devices; ++d) {
        double free_at = 0;
        for (const TaskIndex t : result->run_on(d)) {
          QVERIFY(result->start_s[t] >= free_at);
          free_at = result->end_s[t];
        }
      }
    }
  }

  void an_order_that_cannot_finish_is_explained() {
    const auto graph = make_graph({1, 1, 1, 1}, {0, 0, 0, 0}, {{0, 3}, {1, 2}});
    auto placement = on(2, {0, 1, 0, 1});
    placement.order = {{2, 0}, {3, 1}};
    const auto result = simulate(*graph, placement, false, "p.json");
    QVERIFY(!result);
    QCOMPARE(result.error().message(),
             std::string("p.json: the order can never finish: device 0 cannot run task 2 'c' before task 1 'b', which "
                         "device 1 runs after task 3 'd'; device 1 cannot run task 3 'd' before task 0 'a', which "
                         "device 0 runs after task 2 'c'"));
    placement.order = {{0, 2}, {3, 1}};
    QVERIFY(simulate(*graph, placement));
  }

  void placements_are_checked() {
    const auto graph = make_graph({1, 1}, {0, 0}, {{0, 1}});
    const auto message = [&](const Placement& placement) {
      const auto result = simulate(*graph, placement, false, "p");
      return result ? std::string() : result.error().message();
    };
    QCOMPARE(message(on(1, {0})), std::string("p: the placement has 1 tasks, the task graph has 2"));
    QCOMPARE(message(on(1, {0, 1})), std::string("p: task 1 'b' is on device 1 of 1"));
    QCOMPARE(message(on(0, {0, 0})), std::string("p: a placement on 0 devices"));
    auto placement = on(2, {0, 1});
    placement.order = {{0}};
    QCOMPARE(message(placement), std::string("p: order lists 1 devices, the placement has 2"));
    placement.order = {{0}, {}};
    QCOMPARE(message(placement), std::string("p: order leaves out task 1 'b'"));
    placement.order = {{0, 0}, {1}};
    QCOMPARE(message(placement), std::string("p: order of device 0 names task 0 'a' twice"));
    placement.order = {{0, 1}, {}};
    QCOMPARE(message(placement), std::string("p: order of device 0 names task 1 'b', which is on device 1"));
    placement.order = {{0}, {1, 7}};
    QCOMPARE(message(placement), std::string("p: order of device 1 names task 7 of 2"));
  }

  void layered_graphs_are_those_of_the_recipe() {
    const std::tuple<std::uint64_t, std::size_t, std::uint64_t> expected[] = {
        {11744, 34789, 0xc0fa5c62634b06acull},
        {86663, 257014, 0x666e419f26cc1a8eull},
        {187742, 557088, 0xe2751b48a2b0410full},
        {1000000, 2969345, 0xd935e727966609c9ull}};
    for (const auto& [tasks, edges, sum] : expected) {
      const auto dag = layered_dag(tasks, 1);
      QCOMPARE(dag.edges.size(), edges);
      QCOMPARE(checksum(dag), sum);
    }
  }

  void a_simulator_forgets_what_it_ran() {
    Random random(9);
    Simulator simulator;
    Simulation reused;
    for (int i = 0; i < 300; ++i) {
      const auto devices = std::uint32_t(1 + below(random, 5));
      const auto graph = random_graph(random, devices);
      const auto placement = random_placement(random, *graph, devices);
      const auto fresh = simulate(*graph, placement);
      QCOMPARE(simulator.run(*graph, placement, reused).has_value(), fresh.has_value());
      if (!fresh) continue;
      QCOMPARE(reused.makespan_s, fresh->makespan_s);
      QCOMPARE(reused.run, fresh->run);
      QCOMPARE(reused.sent, fresh->sent);
    }
  }
};

QTEST_APPLESS_MAIN(SimulatorTest)
#include "simulator_test.moc"
