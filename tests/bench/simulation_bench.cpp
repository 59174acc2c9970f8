// SPDX-License-Identifier: Apache-2.0
// How fast the simulator is: seeded layered graphs, placed lane by lane (few transfers) and at random (nearly every
// edge is one). Prints the median of several runs with a simulator that keeps its memory, and of first runs.
// Fails (exit 1) where 187,742 tasks on 16 devices take 60 ms or a million takes half a second.
#include <time.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/simulation/simulator.h"
#include "simulation/layered_dag.h"

namespace {

using namespace turnpoint;

Placement lanes(const TaskGraph& graph, const test::LayeredDag& dag, std::uint32_t devices) {
  Placement placement;
  placement.devices = devices;
  const std::uint64_t per_device = test::LayeredDag::kLanes / devices;
  for (std::uint64_t t = 0; t < graph.task_count(); ++t) {
    const std::uint64_t forward = t < dag.forward ? t : t < 2 * dag.forward ? dag.mirror(t) : t;
    placement.device.push_back(std::uint32_t(forward % test::LayeredDag::kLanes / per_device));
  }
  return placement;
}

Placement scattered(const TaskGraph& graph, std::uint32_t devices) {
  Placement placement;
  placement.devices = devices;
  test::SplitMix64 random(7);
  for (std::size_t t = 0; t < graph.task_count(); ++t) placement.device.push_back(std::uint32_t(random.below(devices)));
  return placement;
}

/// Processor time of this thread: other programs on the machine do not count.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

/// Processor seconds: of the first run, and the median of `repeats` later ones.
std::pair<double, double> measure(const TaskGraph& graph, const Placement& placement, int repeats, Simulation& result) {
  Simulator simulator;
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    const double begin = processor_seconds();
    if (!simulator.run(graph, placement, result)) return {-1, -1};
    seconds.push_back(processor_seconds() - begin);
  }
  const double first = seconds.front();
  std::sort(seconds.begin() + 1, seconds.end());
  return {first, seconds[1 + std::size_t(repeats) / 2]};
}

}  // namespace

int main() {
  constexpr std::uint32_t kDevices = 16;
  bool good = true;
  std::printf("%9s %9s %-9s %9s %10s %9s %9s %12s %9s\n", "tasks", "edges", "placed", "transfers", "makespan s",
              "first ms", "ms", "tasks/s", "speed-up");
  for (const std::uint64_t tasks : {11744, 86663, 187742, 1000000}) {
    const auto dag = test::layered_dag(tasks, 1);
    const auto graph = test::layered_graph(dag);
    double sum = 0;
    for (const double t : graph->time_s) sum += t;
    for (const char* how : {"lanes", "scattered"}) {
      const Placement placement =
          std::strcmp(how, "lanes") == 0 ? lanes(*graph, dag, kDevices) : scattered(*graph, kDevices);
      Simulation result;
      const auto [first, median] = measure(*graph, placement, 7, result);
      const double limit = tasks == 187742 ? 0.060 : tasks == 1000000 ? 0.5 : 1e9;
      const bool within = median >= 0 && median < limit;
      good &= within;
      std::printf("%9zu %9zu %-9s %9zu %10.4f %9.1f %9.1f %12.0f %9.2f%s\n", graph->task_count(), graph->edge_count(),
                  how, result.transfers.size(), result.makespan_s, first * 1e3, median * 1e3, double(tasks) / median,
                  sum / result.makespan_s, within ? "" : "  ABOVE THE BAR");
    }
  }
  return good ? 0 : 1;
}
