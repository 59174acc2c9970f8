// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli simulate: a task graph and a placement from files; what the simulator says of them as JSON, and on
// request a trace for Chrome or Perfetto.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "core/base/json.h"
#include "core/import/task_graph.h"
#include "core/simulation/simulator.h"
#include "core/simulation/trace.h"

namespace turnpoint::cli {

namespace {

struct SimulateArguments {
  std::string graph, placement, trace, out;
};

nlohmann::json critical_steps(const TaskGraph& graph, const Placement& placement, const Simulation& simulation) {
  constexpr std::size_t kShown = 1000;
  const auto path = critical_path(graph, placement, simulation);
  double computing = 0, sending = 0;
  auto steps = nlohmann::json::array();
  for (const auto& step : path) {
    const auto& t = simulation.transfers;
    const double seconds = step.is_transfer ? t[step.index].end_s - t[step.index].start_s
                                            : simulation.end_s[step.index] - simulation.start_s[step.index];
    (step.is_transfer ? sending : computing) += seconds;
    if (steps.size() >= kShown) continue;
    if (step.is_transfer)
      steps.push_back({{"transfer_of", t[step.index].source}, {"from", t[step.index].from}, {"to", t[step.index].to}});
    else
      steps.push_back({{"task", step.index}, {"device", placement.device[step.index]}});
    steps.back()["waited_for_device"] = step.waited;
  }
  return {{"compute_s", computing}, {"transfer_s", sending}, {"length", path.size()}, {"steps", std::move(steps)}};
}

nlohmann::json described(const TaskGraph& graph, const Placement& placement, const Simulation& simulation) {
  auto devices = nlohmann::json::array();
  for (std::uint32_t d = 0; d < placement.devices; ++d) {
    const auto& device = simulation.devices[d];
    nlohmann::json entry = {{"busy_s", device.busy_s},
                            {"peak_bytes", device.peak_bytes},
                            {"peak_at_s", device.peak_at_s},
                            {"persistent_bytes", device.persistent_bytes},
                            {"send_s", device.send_s},
                            {"sent_bytes", device.sent_bytes},
                            {"tasks", simulation.run_on(d).size()}};
    if (graph.memory_of(d) != kUnlimitedBytes) {
      entry["memory_bytes"] = graph.memory_of(d);
      entry["fits"] = device.peak_bytes <= graph.memory_of(d);
    }
    devices.push_back(std::move(entry));
  }
  return {{"format", "turnpoint/simulation@1"},
          {"makespan_s", simulation.makespan_s},
          {"tasks", graph.task_count()},
          {"transfers", simulation.transfers.size()},
          {"devices", std::move(devices)},
          {"peak_communication_bytes", peak_communication(simulation)},
          {"critical_path", critical_steps(graph, placement, simulation)}};
}

int simulate_files(const SimulateArguments& arguments) {
  const auto graph = open_task_graph(arguments.graph);
  if (!graph) return report(graph.error());
  const auto placement = open_placement(arguments.placement);
  if (!placement) return report(placement.error());
  const bool traced = !arguments.trace.empty();
  const auto simulation = simulate(**graph, *placement, traced, arguments.placement);
  if (!simulation) return report(simulation.error());
  if (const auto together = check_colocation(**graph, *placement, arguments.placement); !together)
    fmt::print(stderr, "turnpoint-cli: warning: {}\n", together.error().message());
  if (traced) {
    const auto written = write_file_atomically(arguments.trace, write_trace(**graph, *placement, *simulation));
    if (!written) return report(written.error());
  }
  return write_output(
      arguments.out,
      described(**graph, *placement, *simulation).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n");
}

}  // namespace

void add_simulate_command(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* sub = app.add_subcommand("simulate", "Simulate a placed task graph exactly");
  sub->add_option("graph", arguments->graph, kTaskGraphFiles)->required();
  sub->add_option("placement", arguments->placement, "File in the format turnpoint/placement@1")->required();
  sub->add_option("--trace", arguments->trace, "File for a timeline that Chrome and Perfetto open");
  sub->add_option("--out", arguments->out, "File for the result; standard output without it");
  sub->callback([arguments, &command] { command.run = [arguments] { return simulate_files(*arguments); }; });
}

}  // namespace turnpoint::cli
