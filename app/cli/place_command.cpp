// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli place: a task graph from a file; a device per task and an order per device to a file or standard
// output.
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/result_table.h"
#include "core/base/text.h"
#include "core/import/task_graph.h"
#include "core/plan_io/task_graph_json.h"
#include "core/search/placement/memory_bound.h"
#include "core/search/placement_registry.h"

namespace turnpoint::cli {

namespace {

struct PlaceArguments {
  std::string graph, memory_limit, method = placement::default_placement_method().name, objective = "makespan", out;
  std::uint32_t devices = 0;
  std::uint64_t seed = 0;
  int threads = 0;
  bool json = false;
};

/// What a person at a terminal reads: a row for each device.
std::string table_of(const PlaceArguments& arguments, const TaskGraph& graph,
                     const placement::PlacementRequest& request, const SimulatedPlacement& result) {
  std::vector<std::vector<std::string>> rows{{"device", "tasks", "busy", "peak", "persistent", "memory", "fits", ""}};
  std::vector<std::size_t> tasks(arguments.devices);
  std::vector<double> busy(arguments.devices);
  for (std::size_t t = 0; t < result.placement.device.size(); ++t) {
    ++tasks[result.placement.device[t]];
    busy[result.placement.device[t]] += graph.time_s[t] / graph.speed_of(result.placement.device[t]);
  }
  for (std::uint32_t d = 0; d < arguments.devices; ++d) {
    const std::int64_t limit = request.memory_limit > 0 ? request.memory_limit : graph.memory_of(d);
    const bool unlimited = limit == kUnlimitedBytes;
    rows.push_back({std::to_string(d), std::to_string(tasks[d]), format_seconds(busy[d]),
                    format_bytes(result.peak_bytes[d]), format_bytes(result.persistent_bytes[d]),
                    unlimited ? "-" : format_bytes(limit), result.peak_bytes[d] <= limit ? "yes" : "no", ""});
  }
  return fmt::format(
      "{}: {} tasks on {} devices, placed by {} for the {}\nmakespan {}, busiest device {}, peak communication "
      "{}\n\n{}\n"
      "Whether a device fits is judged by its simulated peak. --json prints the placement, --out FILE keeps it.\n",
      arguments.graph, graph.task_count(), arguments.devices, result.method,
      request.objective == placement::Objective::makespan ? "makespan" : "busiest device",
      format_seconds(result.makespan_s), format_seconds(result.max_load_s),
      format_bytes(result.peak_communication_bytes), aligned(rows));
}

/// The written placement, with what only `place` knows beside it: later keys of the object.
std::string with_findings(const TaskGraph& graph, const placement::PlacementRequest& request,
                          const SimulatedPlacement& result) {
  PlacementFigures figures;
  figures.method = result.method;
  figures.makespan_s = result.makespan_s;
  figures.max_load_s = result.max_load_s;
  figures.search_s = result.search_s;
  figures.peak_bytes = result.peak_bytes;
  figures.persistent_bytes = result.persistent_bytes;
  figures.peak_communication_bytes = result.peak_communication_bytes;
  std::string text = write_placement(result.placement, figures);
  nlohmann::json more = {{"objective", to_string(request.objective)}, {"fits", result.fits()}};
  if (request.limited(graph)) {
    more["moved_tasks"] = result.moved_tasks;
    more["limited_by"] = request.objective == placement::Objective::max_load ? "persistent_bytes" : "peak_bytes";
  }
  if (result.shortage)
    more["shortage"] = {
        {"device", result.shortage->device}, {"time_s", result.shortage->time_s}, {"bytes", result.shortage->bytes}};
  for (const auto& stage : result.stages)
    more["stages"].push_back({{"name", stage.name}, {"makespan_s", stage.makespan_s}});
  const std::string tail = more.dump();
  const std::size_t end = text.rfind('}');
  return text.substr(0, end) + ", " + tail.substr(1) + "\n";
}

int place(const PlaceArguments& arguments) {
  if (const int refused = check_output(arguments.out); refused != kDone) return refused;
  placement::PlacementRequest request;
  request.devices = arguments.devices;
  request.seed = arguments.seed;
  request.objective =
      arguments.objective == "makespan" ? placement::Objective::makespan : placement::Objective::max_load;
  if (!arguments.memory_limit.empty()) {
    const auto bytes = parse_bytes(arguments.memory_limit);
    if (!bytes || *bytes == 0)
      return report(
          usage_error(fmt::format("--memory-limit '{}' is not a size such as 16GiB", arguments.memory_limit)));
    request.memory_limit = *bytes;
  }
  const auto choice = placement::choose_placement_method(arguments.method);
  if (!choice) return report(choice.error());
  if (arguments.graph.starts_with("builtin:"))
    return report(
        usage_error(fmt::format("{} is a model; its training graph is placed by 'turnpoint-cli search {} "
                                "--hardware HW --method {}'",
                                arguments.graph, arguments.graph, arguments.method)));
  const auto graph = open_task_graph(arguments.graph);
  if (!graph) return report(graph.error());
  const auto result = placement::run_placement(*choice->method, **graph, request, command_context(arguments.threads),
                                               choice->parameters);
  if (!result) {
    Error error = result.error();
    if (error.where.empty() && error.code != ErrorCode::cancelled) error.where = arguments.graph;
    return report(error);
  }
  const bool table = !arguments.json && shown_to_a_person(arguments.out);
  const int written = write_output(
      arguments.out, table ? table_of(arguments, **graph, request, *result) : with_findings(**graph, request, *result));
  if (written != kDone) return written;
  const auto peak = std::max_element(result->peak_bytes.begin(), result->peak_bytes.end());
  // The load may be above the makespan: it adds up what a single pass does side by side.
  std::fprintf(stderr,
               "%s: makespan %s for a single pass; passes that follow one another without a gap take %s each, what the "
               "busiest device computes and sends, added up; at most %s of memory on a device; at most %s from one "
               "device to one other\n",
               result->method.c_str(), format_seconds(result->makespan_s).c_str(),
               format_seconds(result->max_load_s).c_str(),
               format_bytes(peak == result->peak_bytes.end() ? 0 : *peak).c_str(),
               format_bytes(result->peak_communication_bytes).c_str());
  const bool stopped = placement::stopped_early(*result);
  if (stopped)
    std::fprintf(stderr, "%s: stopped early; this is the best placement until then\n", result->method.c_str());
  if (result->fits()) return stopped ? kInterrupted : kDone;
  const std::string never = placement::never_fits(**graph, request);
  const bool persistent_only = request.objective == placement::Objective::max_load;
  return report(
      {ErrorCode::infeasible,
       fmt::format("method '{}' found no placement on {} devices that fits: {}{}{}", arguments.method,
                   arguments.devices, describe(*result->shortage), never.empty() ? "" : "; none ever fits: " + never,
                   persistent_only ? "; under max-load the search keeps persistent bytes alone to the limit" : ""),
       arguments.graph,
       {}});
}

}  // namespace

void add_place_command(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<PlaceArguments>();
  CLI::App* sub = app.add_subcommand("place", "Place a task graph on devices");
  sub->footer(
      "Writes turnpoint/placement@1: a device per task and an order per device, with makespan_s, max_load_s, "
      "peak_bytes\n"
      "and persistent_bytes per device, peak_communication_bytes, the most that one device sends to one other, and "
      "for\n"
      "pardnn the makespan after each of its stages. To fit is to keep the simulated peaks to the limit. Under "
      "makespan the search goes by them, too; under max-load it goes by "
      "persistent\n"
      "bytes alone, as the placement study does: what it finds may not fit. What does not fit the limit is written\n"
      "nevertheless, with the device, the instant and the bytes that are missing, and exits 4. 'turnpoint-cli "
      "simulate'\n"
      "recomputes every figure; 'turnpoint-cli search GRAPH' compares methods in one result file.");
  sub->add_option("graph", arguments->graph, kTaskGraphFiles)->required();
  sub->add_option("--devices", arguments->devices, "Number of devices")
      ->required()
      ->check(CLI::Range(1u, TaskGraphBuilder::kMaxDevices));
  sub->add_option("--memory-limit", arguments->memory_limit, "Bytes per device, also as 16GiB");
  std::vector<std::string> names;
  for (const auto& method : placement::placement_methods()) names.push_back(method.name);
  sub->add_option("--method", arguments->method,
                  fmt::format("One of {}, with parameters behind a colon", fmt::join(names, ", ")))
      ->capture_default_str();
  sub->add_option("--objective", arguments->objective,
                  "makespan: the end of one pass; max-load: the busiest device of a pipeline that is always full")
      ->capture_default_str()
      ->check(CLI::IsMember({"makespan", "max-load"}));
  sub->add_option("--seed", arguments->seed, "Same seed, same placement");
  sub->add_option("--threads", arguments->threads, "Threads; 0: as many as the machine has; the placement is the same")
      ->check(CLI::Range(0, 1024));
  sub->add_flag("--json", arguments->json, "Print the placement also on a terminal, which shows a table without it");
  sub->add_option("--out", arguments->out, "File for the placement; standard output without it");
  sub->callback([arguments, &command] { command.run = [arguments] { return place(*arguments); }; });
}

}  // namespace turnpoint::cli
