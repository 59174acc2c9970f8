// SPDX-License-Identifier: Apache-2.0
// Placement that is learnt beside placement that is not: training graphs on P100s of 16 GB behind 12 GB/s and 25 us.
// Prints, per network, number of devices and method: runtime, peak communication (one device to one other), peak
// memory, calls of the simulator, processor seconds; for learning methods the iterations per second and the gain over
// what they began with.
//   trinity_bench [--calls N] [--only NETWORK] [--devices K] [--seeds N] [PARAMETERS...]
// Each further argument is a row: parameters of the method, as in "from=scratch:groups=32".
#include <time.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/hardware/cluster.h"
#include "core/import/source/model_source.h"
#include "core/search/placement/judge.h"
#include "core/search/placement/placed.h"
#include "core/search/placement_registry.h"
#include "core/search/trinity/reward.h"
#include "core/search/trinity/trinity_methods.h"

namespace {

using namespace turnpoint;

double processor_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

double wall_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

struct Bench {
  std::string calls = "4000", only;
  int devices = 0, seeds = 1;
  std::vector<std::string> rows;
};

Expected<ScenarioPtr> scenario_of(const char* network, int devices) {
  constexpr std::int64_t kBatch = 64;
  const auto source = open_model(std::string("builtin:") + network);
  if (!source) return source.error();
  const auto model = (*source)->bind({kBatch, 0});
  if (!model) return model.error();
  const auto preset = open_hardware("p100-16gb-1x" + std::to_string(devices));
  if (!preset) return preset.error();
  auto cluster = std::make_shared<Cluster>(**preset);
  cluster->links[kIntraNode].bandwidth = 12e9;
  cluster->links[kIntraNode].latency_s = 25e-6;
  Settings settings;
  settings.batch = kBatch;
  return make_scenario(*model, cluster, "p100", settings);
}

/// One row; returns the makespan, 0 where there is none.
double print_row(const std::string& name, const TaskGraph& graph, const placement::PlacementRequest& request,
                 const placement::PlacementMethod& method, double best_before) {
  const double processor = processor_now(), wall = wall_now();
  const auto found = placement::run_placement(method, graph, request, {});
  const double used = processor_now() - processor, waited = wall_now() - wall;
  if (!found) {
    std::printf("  %-44s %s\n", name.c_str(), found.error().message().c_str());
    return 0;
  }
  placement::Judge judge(graph, request);
  const auto verdict = judge.measure(found->placement);
  if (!verdict) return 0;
  std::int64_t peak = 0;
  for (const std::int64_t bytes : verdict->peak_bytes) peak = std::max(peak, bytes);
  std::printf("  %-44s %9.2f ms %8.3f GB %8.3f GB %8.2f s%s", name.c_str(), verdict->makespan_s * 1e3,
              double(trinity::peak_communication(judge.simulation(), request.devices)) * 1e-9, double(peak) * 1e-9,
              used, found->fits() ? "" : "  DOES NOT FIT");
  unsigned long long calls = 0, iterations = 0;
  for (const PlacementStage& stage : found->stages)
    if (std::sscanf(stage.name.c_str(), "learnt, %llu placements in %llu iterations", &calls, &iterations) == 2) {
      std::printf("  %llu calls, %.1f iterations/s", calls, double(iterations) / waited);
      if (found->stages.size() > 1)
        std::printf(", %+.1f %% on what it began with",
                    100 * (verdict->makespan_s / found->stages.front().makespan_s - 1));
      if (best_before > 0) std::printf(", %+.1f %% on the best above", 100 * (verdict->makespan_s / best_before - 1));
    }
  std::printf("\n");
  std::fflush(stdout);
  return verdict->makespan_s;
}

bool run_cell(const char* network, int devices, const Bench& bench) {
  const auto scenario = scenario_of(network, devices);
  if (!scenario) return std::printf("%s: %s\n", network, scenario.error().message().c_str()), false;
  const auto placed = search::graph_to_place(**scenario);
  if (!placed) return std::printf("%s: %s\n", network, placed.error().message().c_str()), false;
  const TaskGraph& graph = *placed->graph;
  placement::PlacementRequest request = search::placement_request(**scenario);
  std::printf("%s on %d devices: %zu tasks; runtime, peak communication, peak memory, processor time\n", network,
              devices, graph.task_count());
  double best = 0;
  for (const char* name : {"single-device", "heft", "pardnn"}) {
    const auto method = placement::find_placement_method(name);
    if (!method) return false;
    const double makespan = print_row(name, graph, request, **method, 0);
    if (best == 0 || (makespan > 0 && makespan < best)) best = makespan;
  }
  std::vector<std::string> rows = bench.rows;
  if (rows.empty()) rows = {"hierarchical", "from=scratch", "from=best"};
  bool good = true;
  for (const std::string& row : rows)
    for (int seed = 0; seed < bench.seeds; ++seed) {
      request.seed = std::uint64_t(seed);
      const std::string budget = row.find("calls=") == std::string::npos ? "calls=" + bench.calls : "";
      const bool hierarchical = row == "hierarchical";
      const std::string text = hierarchical ? budget : row + (budget.empty() ? "" : ":" + budget);
      const auto run = hierarchical ? trinity::hierarchical_run(&placement::placement_methods, text)
                                    : trinity::trinity_run(&placement::placement_methods, text);
      if (!run) return std::printf("%s: %s\n", row.c_str(), run.error().message().c_str()), false;
      placement::PlacementMethod method;
      method.name = row;
      method.run = *run;
      good &= print_row((hierarchical ? "" : "trinity:") + row, graph, request, method, best) > 0;
    }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  for (int i = 1; i < argc; ++i) {
    const auto value = [&]() -> const char* { return i + 1 < argc ? argv[++i] : ""; };
    if (std::strcmp(argv[i], "--calls") == 0)
      bench.calls = value();
    else if (std::strcmp(argv[i], "--only") == 0)
      bench.only = value();
    else if (std::strcmp(argv[i], "--devices") == 0)
      bench.devices = std::atoi(value());
    else if (std::strcmp(argv[i], "--seeds") == 0)
      bench.seeds = std::atoi(value());
    else if (std::strncmp(argv[i], "--", 2) == 0)
      return std::fprintf(stderr, "unknown argument %s\n", argv[i]), 2;
    else
      bench.rows.push_back(argv[i]);
  }
  bool good = true;
  for (const char* network : {"gnmt", "inception-v3", "nmt-2"})
    for (const int devices : {2, 4})
      if ((bench.only.empty() || bench.only == network) && (bench.devices == 0 || bench.devices == devices))
        good &= run_cell(network, devices, bench);
  return good ? 0 : 1;
}
