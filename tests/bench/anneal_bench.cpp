// SPDX-License-Identifier: Apache-2.0
// Annealing of placements on P100s over 12 GB/s and 17 us with 11 GiB, batch 64. Prints, and fails (exit 1) where a bar
// is missed:
//   simulated-annealing: 20,000 calls find the six figures that plain search was recorded to reach, within 2 %;
//   pardnn: as it comes, within 8 % of them in less than 2 s of a core;
//   calls: how many placements a second are simulated by rank, beside a list schedule and a simulation each, which is
//          how they were judged before.
// Then the same methods on graphs that nothing was tried on: random layered ones and networks that are not in the list.
// There pardnn has to come within 8 % of annealing in the same run, where that finds what fits.
// Seconds are of the process, so that other programs on the machine do not count.
// Arguments: calls (20000), seeds (1), a network (all).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/processor_seconds.h"
#include "core/import/source/model_source.h"
#include "core/search/placement/judge.h"
#include "core/search/placement/list_schedule.h"
#include "core/search/placement/placed.h"
#include "core/search/placement/random.h"
#include "core/search/placement/units.h"
#include "core/search/placement_registry.h"
#include "core/search/scenario_of.h"
#include "core/simulation/ranked.h"
#include "simulation/layered_dag.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::placement;

struct Case {
  std::string name;
  std::uint32_t devices;
  double figure_ms;  ///< 0: none is known
};

TaskGraphPtr network(const Case& wanted, PlacementRequest& request, bool whole_layers = false) {
  const auto source = open_model("builtin:" + wanted.name);
  const auto preset = open_hardware("p100-16gb-1x" + std::to_string(wanted.devices));
  if (!source || !preset) std::exit(2);
  auto cluster = std::make_shared<Cluster>(**preset);
  cluster->links[kIntraNode].bandwidth = 12e9;
  cluster->links[kIntraNode].latency_s = 17e-6;
  Settings settings;
  settings.batch = 64;
  settings.memory_limit = std::int64_t(11) << 30;
  const auto model = (*source)->bind({settings.batch, 0});
  if (!model) std::exit(2);
  const auto scenario = make_scenario(*model, cluster, "p100 over 12 GB/s", settings);
  if (!scenario) std::exit(2);
  TrainingGraphOptions options = search::usual_training_graph();
  options.whole_layers = whole_layers;
  const auto placed = search::graph_to_place(**scenario, options);
  if (!placed) std::exit(2);
  request = search::placement_request(**scenario);
  return placed->graph;
}

struct Measured {
  double makespan_ms = 0, seconds = 0;
  std::size_t points = 0;
  bool fits = false;
};

Measured run(const std::string& text, const TaskGraph& graph, const PlacementRequest& request) {
  const auto choice = choose_placement_method(text);
  if (!choice) std::exit(2);
  RunContext context;
  context.threads = 1;
  const double begin = test::processor_seconds();
  const auto result = run_placement(*choice->method, graph, request, context, choice->parameters);
  const double seconds = test::processor_seconds() - begin;
  if (!result) {
    std::printf("%s: %s\n", text.c_str(), result.error().message().c_str());
    std::exit(2);
  }
  return {result->makespan_s * 1e3, seconds, result->others.size() + 1, result->fits()};
}

/// The bar is so many per cent above the figure; 0 calls: the method counts them itself.
bool print(const char* method, unsigned long long calls, const Measured& m, double figure_ms, double percent,
           double most_s) {
  const bool barred = figure_ms > 0 && percent > 0;
  const bool good =
      !barred || (m.fits && m.makespan_ms <= figure_ms * (1 + percent / 100) && (most_s == 0 || m.seconds < most_s));
  std::printf("  %-20s", method);
  if (calls)
    std::printf(" %7llu calls", calls);
  else
    std::printf("              ");
  std::printf("  %7.2f s  %8.2f ms", m.seconds, m.makespan_ms);
  if (figure_ms > 0) std::printf("  %+6.1f %%", (m.makespan_ms / figure_ms - 1) * 100);
  if (barred) std::printf("  bar %8.2f ms", figure_ms * (1 + percent / 100));
  std::printf("  %3zu points%s%s\n", m.points, m.fits ? "" : "  DOES NOT FIT", good ? "" : "  BAR MISSED");
  std::fflush(stdout);
  return good;
}

/// Placements a second, each a changed unit and changed ranks away from the one before: by rank, and as before.
void print_speeds(const TaskGraph& graph, const PlacementRequest& request) {
  constexpr int kCalls = 300;
  const Units units = make_units(graph);
  const ScheduleCosts costs(graph, request.devices);
  std::vector<double> rank = bottom_levels(costs, 1.0);
  std::vector<std::uint32_t> device(graph.task_count());
  Random random(1);
  std::vector<std::uint32_t> of_unit(units.count());
  for (auto& d : of_unit) d = random.below(request.devices);
  RankedSimulator simulator(graph, request.devices);
  for (TaskIndex t = 0; t < graph.task_count(); ++t) {
    simulator.move(t, device[t] = of_unit[units.of_task[t]]);
    simulator.set_rank(t, float(rank[t]));
    rank[t] = float(rank[t]);
  }
  Judge judge(graph, request);
  double ranked_s = 0, before_s = 0;
  for (int call = 0; call < kCalls; ++call) {
    const std::uint32_t unit = random.below(units.count()), to = random.below(request.devices);
    double begin = test::processor_seconds();
    for (TaskIndex t = 0; t < graph.task_count(); ++t)
      if (units.of_task[t] == unit) simulator.move(t, to);
    simulator.run({});
    ranked_s += test::processor_seconds() - begin;
    for (TaskIndex t = 0; t < graph.task_count(); ++t)
      if (units.of_task[t] == unit) device[t] = to;
    begin = test::processor_seconds();
    const Schedule schedule = ready_schedule(costs, device, rank, {});
    const auto verdict = judge.measure(schedule.placement);
    before_s += test::processor_seconds() - begin;
    if (!verdict) std::exit(2);
  }
  std::printf("  calls a second: %.0f by rank to the end, %.0f as a list schedule and a simulation (x%.2f)\n",
              kCalls / ranked_s, kCalls / before_s, before_s / ranked_s);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long long calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000;
  const int seeds = argc > 2 ? std::atoi(argv[2]) : 1;
  const char* only = argc > 3 ? argv[3] : nullptr;
  const std::string annealing = "simulated-annealing:calls=" + std::to_string(calls);
  const std::string drawn = "random-search:calls=" + std::to_string(calls / 10);
  bool good = true;
  const Case known[] = {{"gnmt", 4, 151.6},  {"gnmt", 2, 194.0},         {"nmt-2", 4, 105.6},
                        {"nmt-2", 2, 134.1}, {"inception-v3", 4, 231.3}, {"inception-v3", 2, 241.1}};
  for (const Case& one : known)
    for (const bool whole_layers : {true, false}) {
      if (only && one.name != only) continue;
      PlacementRequest request;
      const TaskGraphPtr graph = network(one, request, whole_layers);
      std::printf("%s on %u devices%s: %zu tasks, %zu edges, %zu units; recorded %.1f ms\n", one.name.c_str(),
                  one.devices, whole_layers ? ", whole layers" : "", graph->task_count(), graph->edge_count(),
                  make_units(*graph).count(), one.figure_ms);
      print_speeds(*graph, request);
      for (int seed = 1; seed <= seeds; ++seed) {
        request.seed = std::uint64_t(seed);
        good &= print("simulated-annealing", calls, run(annealing, *graph, request), one.figure_ms,
                      calls == 20000 ? 2 : 0, 0);
        good &= print("pardnn", 0, run("pardnn", *graph, request), one.figure_ms, 8, 2);
      }
      print("random-search", calls / 10, run(drawn, *graph, request), one.figure_ms, 0, 0);
      print("heft", 0, run("heft", *graph, request), one.figure_ms, 0, 0);
    }
  if (only) return good ? 0 : 1;
  std::printf("not seen before\n");
  std::vector<std::pair<std::string, std::pair<TaskGraphPtr, PlacementRequest>>> unseen;
  for (const std::uint64_t seed : {1, 2}) {
    PlacementRequest request;
    request.devices = 4;
    const auto tasks = std::uint64_t(seed == 1 ? 800 : 3000);
    unseen.push_back({"layered, " + std::to_string(tasks) + " tasks",
                      {test::layered_graph(test::layered_dag(tasks, seed)), request}});
  }
  for (const Case& one : {Case{"pnasnet-large", 4, 0}, Case{"transformer-s", 4, 0}, Case{"bert-large", 2, 0}}) {
    PlacementRequest request;
    const TaskGraphPtr graph = network(one, request);
    unseen.push_back({one.name + " on " + std::to_string(one.devices) + " devices", {graph, request}});
  }
  for (const auto& [name, what] : unseen) {
    const auto& [graph, request] = what;
    std::printf("%s: %zu tasks, %zu edges\n", name.c_str(), graph->task_count(), graph->edge_count());
    const Measured annealed = run(annealing, *graph, request);
    print("simulated-annealing", calls, annealed, 0, 0, 0);
    good &= print("pardnn", 0, run("pardnn", *graph, request), annealed.fits ? annealed.makespan_ms : 0,
                  calls == 20000 ? 8 : 0, 0);
    print("random-search", calls / 10, run(drawn, *graph, request), 0, 0, 0);
    print("heft", 0, run("heft", *graph, request), 0, 0, 0);
  }
  return good ? 0 : 1;
}
