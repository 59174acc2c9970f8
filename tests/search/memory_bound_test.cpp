// SPDX-License-Identifier: Apache-2.0
// What is said never to fit must not be reached by any placement: every placement of small graphs is simulated.
#include "core/search/placement/memory_bound.h"

#include <QtTest>
#include <algorithm>
#include <ctime>

#include "core/search/placement_registry.h"
#include "core/simulation/simulator.h"
#include "sanitized.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::placement;
using namespace turnpoint::test;

namespace {

/// The least over all placements that keep groups together of the largest device's peak.
std::int64_t least_peak(const TaskGraph& graph, std::uint32_t devices) {
  Placement placement;
  placement.devices = devices;
  placement.device.assign(graph.task_count(), 0);
  Simulator simulator;
  Simulation simulation;
  std::int64_t least = kUnlimitedBytes;
  for (;;) {
    if (check_colocation(graph, placement, "test") && simulator.run(graph, placement, simulation)) {
      std::int64_t peak = 0;
      for (const auto& device : simulation.devices) peak = std::max(peak, device.peak_bytes);
      least = std::min(least, peak);
    }
    std::size_t at = 0;
    while (at < placement.device.size() && ++placement.device[at] == devices) placement.device[at++] = 0;
    if (at == placement.device.size()) return least;
  }
}

PlacementRequest limited(std::uint32_t devices, std::int64_t bytes) {
  PlacementRequest request;
  request.devices = devices;
  request.memory_limit = bytes;
  return request;
}

TaskGraphPtr of_tasks(const std::vector<TaskGraphBuilder::Task>& tasks) {
  TaskGraphBuilder builder;
  for (const auto& task : tasks) builder.add_task(task);
  return *builder.finish("test");
}

bool says(const std::string& reason, const char* words) { return reason.find(words) != std::string::npos; }

}  // namespace

class MemoryBoundTest : public QObject {
  Q_OBJECT

 private slots:
  void no_placement_does_what_is_said_to_be_impossible() {
    int proven = 0, tight = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      const std::uint32_t devices = 2 + seed % 2;
      const auto graph = random_task_graph(seed, 6);
      const std::int64_t least = least_peak(*graph, devices);
      // Whatever is said of the smallest limit that can be kept, it is not that nothing keeps it.
      const std::string wrong = never_fits(*graph, limited(devices, least));
      QVERIFY2(wrong.empty(), fmt::format("graph {}: {} but {} is enough", seed, wrong, least).c_str());
      proven += !never_fits(*graph, limited(devices, std::max<std::int64_t>(1, least / 3))).empty();
      tight += least > 1 && !never_fits(*graph, limited(devices, least - 1)).empty();
    }
    QVERIFY2(proven > 200, qPrintable(QString::number(proven)));
    QVERIFY2(tight > 20, qPrintable(QString::number(tight)));
  }

  void each_bound_says_its_reason() {
    TaskGraphBuilder::Task task;
    task.time_s = 1;
    task.persistent_bytes = 400;
    const auto three = of_tasks({task, task, task});
    QVERIFY(says(never_fits(*three, limited(2, 500)), "held to the end"));
    QVERIFY(says(never_fits(*three, limited(2, 700)), "3 groups of tasks need more than half"));
    QVERIFY(says(never_fits(*three, limited(4, 300)), "held to the end") ||
            says(never_fits(*three, limited(4, 300)), "must be on one device"));
    QVERIFY(says(never_fits(*three, limited(8, 399)), "must be on one device"));
    QVERIFY(never_fits(*three, limited(3, 400)).empty());
    QVERIFY(never_fits(*three, limited(2, kUnlimitedBytes)).empty());
    task.workspace_bytes = 200;
    const auto works = of_tasks({task});
    QVERIFY(says(never_fits(*works, limited(2, 599)), "while it runs"));
    QVERIFY(never_fits(*works, limited(2, 600)).empty());
    // A pipeline that is always full counts parameters alone; a task that takes no time leaves no trace.
    PlacementRequest full = limited(2, 599);
    full.objective = placement::Objective::max_load;
    QVERIFY(never_fits(*works, full).empty());
    task.time_s = 0;
    QVERIFY(never_fits(*of_tasks({task}), limited(2, 599)).empty());
  }

  /// 300 tasks on 40 devices: a limit that nothing keeps, proven or not, is given up within a bounded amount of work.
  void what_cannot_fit_is_given_up_soon() {
    TaskGraphBuilder builder;
    Draw draw(3);
    for (std::uint32_t t = 0; t < 300; ++t) {
      TaskGraphBuilder::Task task;
      task.time_s = 0.001 * (1 + draw.below(20));
      task.output_bytes = 1000 * (1 + draw.below(1000));
      task.persistent_bytes = t % 3 == 0 ? 1000 * draw.below(2000) : 0;
      task.workspace_bytes = 1000 * draw.below(100);
      builder.add_task(task);
    }
    for (std::uint32_t t = 1; t < 300; ++t)
      for (std::uint32_t k = 0; k < std::min(t, 12u); ++k) {
        const std::uint32_t near = std::min(t, 40u);
        builder.add_edge(t - 1 - draw.below(near), t);
      }
    const auto graph = *builder.finish("dense");
    const auto method = *find_placement_method("pardnn");
    for (const std::int64_t limit : {1000, 4000000, 7000000, 9000000}) {
      RunContext context;
      context.threads = 1;
      const auto begin = std::clock();
      const auto result = run_placement(*method, *graph, limited(40, limit), context);
      const double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
      QVERIFY(result && !result->fits());
      const double most = never_fits(*graph, limited(40, limit)).empty() ? 4.0 : 1.0;
      qInfo("limit %lld: %.2f s of processor time, %lld bytes missing", (long long)limit, seconds,
            (long long)result->shortage->bytes);
      QVERIFY2(seconds < most * kSanitizerFactor, fmt::format("limit {}: {} s", limit, seconds).c_str());
    }
  }
};

QTEST_APPLESS_MAIN(MemoryBoundTest)
#include "memory_bound_test.moc"
