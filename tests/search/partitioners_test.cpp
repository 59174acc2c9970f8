// SPDX-License-Identifier: Apache-2.0
// METIS and Scotch as placement methods: co-location, memory, use of all devices, seeds, and graphs that are too small
// to part. Skipped, by name, where the build has no such library.
#include "core/search/placement/partitioners.h"

#include <fmt/format.h>

#include <QtTest>
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "core/search/placement_registry.h"
#include "core/simulation/simulator.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::placement;

namespace {

SimulatedPlacement place(const char* name, const TaskGraph& graph, const PlacementRequest& request) {
  auto result = run_placement(**find_placement_method(name), graph, request, {});
  if (!result) qFatal("%s: %s", name, result.error().message().c_str());
  return std::move(*result);
}

PlacementRequest on(std::uint32_t devices, std::uint64_t seed = 0) {
  PlacementRequest request;
  request.devices = devices;
  request.seed = seed;
  return request;
}

/// Chains of equal tasks side by side, each task handing on 100 bytes.
TaskGraphPtr chains(std::uint32_t count, std::uint32_t length) {
  TaskGraphBuilder builder;
  for (std::uint32_t i = 0; i < count * length; ++i) {
    TaskGraphBuilder::Task task;
    const std::string name = fmt::format("t{}", i);
    task.name = name;
    task.time_s = 1;
    task.output_bytes = 100;
    task.persistent_bytes = 10;
    builder.add_task(task);
    if (i % length != 0) builder.add_edge(i - 1, i);
  }
  builder.links.bandwidth = 100;
  return *builder.finish("chains");
}

TaskGraphPtr without_edges(std::uint32_t tasks) {
  TaskGraphBuilder builder;
  for (std::uint32_t i = 0; i < tasks; ++i) {
    TaskGraphBuilder::Task task;
    task.name = "task";
    task.time_s = 1;
    builder.add_task(task);
  }
  return *builder.finish("without edges");
}

std::vector<std::uint32_t> tasks_by_device(const SimulatedPlacement& result, std::uint32_t devices) {
  std::vector<std::uint32_t> tasks(devices, 0);
  for (const std::uint32_t d : result.placement.device) ++tasks[d];
  return tasks;
}

std::size_t cut(const TaskGraph& graph, const Placement& placement) {
  std::size_t edges = 0;
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    for (const TaskIndex to : graph.successors(t)) edges += placement.device[t] != placement.device[to];
  return edges;
}

}  // namespace

#define REQUIRE_LIBRARY(name)                            \
  QFETCH(QString, library);                              \
  const std::string name##_text = library.toStdString(); \
  const char* name = name##_text.c_str();                \
  if (const auto reason = (*find_placement_method(name))->unavailable(); !reason.empty()) QSKIP(reason.c_str())

class PartitionersTest : public QObject {
  Q_OBJECT

  void both() {
    QTest::addColumn<QString>("library");
    QTest::newRow("metis") << "metis";
    QTest::newRow("scotch") << "scotch";
  }

 private slots:
  void groups_stay_together_data() { both(); }
  void groups_stay_together() {
    REQUIRE_LIBRARY(name);
    int grouped = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const auto graph = test::random_task_graph(seed, 20 + seed);
      grouped += graph->groups.size() > 1;
      const SimulatedPlacement result = place(name, *graph, on(2 + std::uint32_t(seed % 4)));
      for (TaskIndex a = 0; a < graph->task_count(); ++a)
        for (TaskIndex b = 0; b < a; ++b)
          if (graph->colocate[a] != kNone && graph->colocate[a] == graph->colocate[b])
            QCOMPARE(result.placement.device[a], result.placement.device[b]);
    }
    QVERIFY2(grouped >= 10, qPrintable(QString::number(grouped)));
  }

  void a_group_may_be_nearly_everything_data() { both(); }
  void a_group_may_be_nearly_everything() {
    REQUIRE_LIBRARY(name);
    TaskGraphBuilder builder;
    for (int i = 0; i < 50; ++i) {
      TaskGraphBuilder::Task task;
      task.name = "task";
      task.time_s = 1;
      if (i < 40) task.colocate = builder.group("all");
      builder.add_task(task);
      if (i > 0) builder.add_edge(i - 1, i, 8);
    }
    const auto graph = *builder.finish("one group");
    const SimulatedPlacement result = place(name, *graph, on(4));
    for (TaskIndex t = 1; t < 40; ++t) QCOMPARE(result.placement.device[t], result.placement.device[0]);
  }

  void memory_is_reported_data() { both(); }
  void memory_is_reported() {
    REQUIRE_LIBRARY(name);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto graph = test::random_task_graph(seed, 60);
      const SimulatedPlacement free = place(name, *graph, on(3));
      const auto simulated = simulate(*graph, free.placement);
      QVERIFY(simulated.has_value() && free.fits());
      std::int64_t highest = 0;
      for (std::uint32_t d = 0; d < 3; ++d) {
        QCOMPARE(free.peak_bytes[d], simulated->devices[d].peak_bytes);
        highest = std::max(highest, free.peak_bytes[d]);
      }
      // They do not look at memory: the same placement comes out, and what is missing is said.
      PlacementRequest tight = on(3);
      tight.memory_limit = highest - 1;
      const SimulatedPlacement limited = place(name, *graph, tight);
      QCOMPARE(limited.placement.device, free.placement.device);
      QVERIFY(!limited.fits());
      QCOMPARE(limited.shortage->bytes, std::int64_t(1));
      QCOMPARE(limited.peak_bytes[limited.shortage->device], highest);
      QVERIFY(limited.shortage->time_s >= 0 && limited.shortage->time_s <= limited.makespan_s);
      tight.memory_limit = highest;
      QVERIFY(place(name, *graph, tight).fits());
    }
  }

  void equal_tasks_use_every_device_data() { both(); }
  void equal_tasks_use_every_device() {
    REQUIRE_LIBRARY(name);
    const auto graph = chains(32, 16);
    for (const std::uint32_t devices : {2u, 3u, 4u, 7u, 8u, 16u}) {
      const SimulatedPlacement result = place(name, *graph, on(devices));
      const auto tasks = tasks_by_device(result, devices);
      const double fair = 512.0 / devices;
      for (const std::uint32_t count : tasks)
        QVERIFY2(count > 0.5 * fair && count < 1.5 * fair, qPrintable(QString("%1 of %2").arg(count).arg(fair)));
      // Thirty-two chains can be dealt out nearly without a cut; tasks in turn cut everything.
      const std::size_t edges = cut(*graph, result.placement);
      QVERIFY2(edges < graph->edge_count() / 8, qPrintable(QString::number(edges)));
      QCOMPARE(cut(*graph, place("round-robin", *graph, on(devices)).placement), graph->edge_count());
    }
    for (const auto& alike : {without_edges(512)}) {
      const auto tasks = tasks_by_device(place(name, *alike, on(8)), 8);
      QVERIFY(*std::min_element(tasks.begin(), tasks.end()) > 0);
    }
  }

  void same_seed_same_placement_data() { both(); }
  void same_seed_same_placement() {
    REQUIRE_LIBRARY(name);
    const auto graph = test::random_task_graph(5, 300);
    for (const std::uint64_t seed : {0ull, 1ull, 77ull, ~0ull}) {
      const SimulatedPlacement first = place(name, *graph, on(5, seed));
      place(name, *chains(9, 9), on(3, 4));  // what ran between does not matter
      const SimulatedPlacement second = place(name, *graph, on(5, seed));
      QCOMPARE(first.placement.device, second.placement.device);
      QCOMPARE(first.makespan_s, second.makespan_s);
    }
  }

  void too_small_to_part_data() { both(); }
  void too_small_to_part() {
    REQUIRE_LIBRARY(name);
    QVERIFY(!TaskGraphBuilder().finish("empty"));  // no graph without tasks ever reaches a method
    const SimulatedPlacement one = place(name, *without_edges(1), on(4));
    QCOMPARE(one.placement.device.size(), std::size_t(1));
    QCOMPARE(one.makespan_s, 1.0);
    // Fewer tasks than devices, as many, and one more: all valid, none doubled up needlessly where there is room.
    for (const std::uint32_t tasks : {2u, 7u, 8u, 9u}) {
      const SimulatedPlacement few = place(name, *without_edges(tasks), on(8));
      const auto used = tasks_by_device(few, 8);
      QCOMPARE(std::accumulate(used.begin(), used.end(), 0u), tasks);
      if (tasks <= 8) QCOMPARE(*std::max_element(used.begin(), used.end()), 1u);
    }
    const SimulatedPlacement whole = place(name, *chains(4, 4), on(1));
    QCOMPARE(tasks_by_device(whole, 1)[0], 16u);
  }

  void times_of_zero_and_of_any_size_data() { both(); }
  void times_of_zero_and_of_any_size() {
    REQUIRE_LIBRARY(name);
    // Weights are scaled to what the libraries count with: neither zeros nor twelve orders of magnitude break them.
    for (const double scale : {0.0, 1e-9, 1e6}) {
      TaskGraphBuilder builder;
      for (int i = 0; i < 64; ++i) {
        TaskGraphBuilder::Task task;
        task.name = "task";
        task.time_s = scale * (i % 5);
        task.output_bytes = i % 3 == 0 ? 0 : std::int64_t(1) << (i % 40);
        builder.add_task(task);
        if (i > 0) builder.add_edge(i / 2, i);
      }
      const auto graph = *builder.finish("scaled");
      QCOMPARE(place(name, *graph, on(4)).placement.device.size(), std::size_t(64));
    }
  }
};

QTEST_APPLESS_MAIN(PartitionersTest)
#include "partitioners_test.moc"
