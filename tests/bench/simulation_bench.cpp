// SPDX-License-Identifier: Apache-2.0
// How fast the simulator is: seeded layered graphs, placed lane by lane (few transfers) and at random (nearly every
// edge is one). Prints processor time (user and system, of this thread): of the first run, which touches fresh memory,
// and the least and the median of later ones with a simulator that keeps its memory.
// Fails (exit 1) where the median of 187,742 tasks on 16 devices is 60 ms or that of a million half a second.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/processor_seconds.h"
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

/// Processor seconds of one run; negative if it failed.
struct Times {
  double first = -1, least = -1, median = -1;
};

Times measure(const TaskGraph& graph, const Placement& placement, int repeats, Simulation& result) {
  Simulator simulator;
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    const double begin = test::processor_seconds();
    if (!simulator.run(graph, placement, result)) return {};
    seconds.push_back(test::processor_seconds() - begin);
  }
  std::sort(seconds.begin() + 1, seconds.end());
  return {seconds[0], seconds[1], seconds[1 + std::size_t(repeats) / 2]};
}

}  // namespace

int main() {
  constexpr std::uint32_t kDevices = 16;
  bool good = true;
  std::printf("%9s %9s %-9s %9s %10s %9s %9s %9s %12s %9s\n", "tasks", "edges", "placed", "transfers", "makespan s",
              "first ms", "least ms", "median ms", "tasks/s", "speed-up");
  for (const std::uint64_t tasks : {11744, 86663, 187742, 1000000}) {
    const auto dag = test::layered_dag(tasks, 1);
    const auto graph = test::layered_graph(dag);
    double sum = 0;
    for (const double t : graph->time_s) sum += t;
    for (const char* how : {"lanes", "scattered"}) {
      const Placement placement =
          std::strcmp(how, "lanes") == 0 ? lanes(*graph, dag, kDevices) : scattered(*graph, kDevices);
      Simulation result;
      const Times times = measure(*graph, placement, 15, result);
      const double limit = tasks == 187742 ? 0.060 : tasks == 1000000 ? 0.5 : 1e9;
      const bool within = times.median >= 0 && times.median < limit;
      good &= within;
      std::printf("%9zu %9zu %-9s %9zu %10.4f %9.1f %9.1f %9.1f %12.0f %9.2f%s\n", graph->task_count(),
                  graph->edge_count(), how, result.transfers.size(), result.makespan_s, times.first * 1e3,
                  times.least * 1e3, times.median * 1e3, double(tasks) / times.median, sum / result.makespan_s,
                  within ? "" : "  ABOVE THE BAR");
    }
  }
  return good ? 0 : 1;
}
