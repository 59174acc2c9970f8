// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/placement_method.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/text.h"
#include "core/search/placement/judge.h"
#include "core/search/placement/met.h"

namespace turnpoint::placement {

const char* to_string(Objective objective) { return objective == Objective::makespan ? "makespan" : "max-load"; }

bool PlacementRequest::limited(const TaskGraph& graph) const {
  for (std::uint32_t d = 0; d < devices; ++d)
    if (limit_of(graph, d) != kUnlimitedBytes) return true;
  return false;
}

std::vector<double> device_loads(const TaskGraph& graph, const Placement& placement) {
  std::vector<double> load(placement.devices, 0);
  std::vector<double> wanted(placement.devices, -1);  // of one tensor, by device: its longest transfer there
  std::vector<std::uint32_t> others;
  for (TaskIndex t = 0; t < graph.task_count(); ++t) {
    const std::uint32_t own = placement.device[t];
    load[own] += graph.time_s[t] / graph.speed_of(own);
    double leaves = 0;
    others.clear();
    for (EdgeIndex e = graph.out_begin[t]; e < graph.out_begin[t + 1]; ++e) {
      const std::uint32_t d = placement.device[graph.out_to[e]];
      if (d == own) continue;
      if (wanted[d] < 0) others.push_back(d);
      const double transfer = graph.transfer_s(e, own, d);
      wanted[d] = std::max(wanted[d], transfer);
      leaves = std::max(leaves, transfer);
    }
    load[own] += leaves;
    for (const std::uint32_t d : others) {
      load[d] += wanted[d];
      wanted[d] = -1;
    }
  }
  return load;
}

double max_load_s(const TaskGraph& graph, const Placement& placement) {
  const auto loads = device_loads(graph, placement);
  return *std::max_element(loads.begin(), loads.end());
}

Expected<PlacementMethod::Run> run_of(const PlacementMethod& method, std::string_view parameters) {
  if (method.run_with) return method.run_with(parameters);
  if (!parameters.empty()) return usage_error(fmt::format("method {} takes no parameters", method.name));
  return method.run;
}

namespace {

/// What was met besides the answer, which stays although something that does not fit beats it: where devices have
/// unlike memories, a smaller peak may lie on a smaller device.
std::vector<Placement> others_of(const Met& met, std::int64_t bytes, double makespan_s) {
  std::vector<Placement> others;
  for (Met::Point& point : met.points()) {
    const bool beaten = point.bytes >= bytes && point.makespan_s >= makespan_s;
    const bool beats = point.bytes <= bytes && point.makespan_s <= makespan_s;
    if (!beaten && !beats) others.push_back(std::move(point.placement));
  }
  return others;
}

Error stopped_without(const std::string& method) {
  Error error = cancelled_error();
  error.nothing_kept = true;
  error.what = fmt::format(
      "method {} was stopped before it had a device for every task, so there is no placement to keep", method);
  return error;
}

}  // namespace

Expected<SimulatedPlacement> run_placement(const PlacementMethod& method, const TaskGraph& graph,
                                           const PlacementRequest& request, const RunContext& context,
                                           std::string_view parameters) {
  const auto begin = std::chrono::steady_clock::now();
  if (request.devices == 0) return usage_error("a placement needs at least one device");
  const std::uint32_t most = std::min(graph.device_limit(), std::uint32_t(TaskGraphBuilder::kMaxDevices));
  if (request.devices > most)
    return usage_error(fmt::format("{} devices asked for, {} are known", request.devices, most), graph.name);
  if (method.unavailable)
    if (std::string reason = method.unavailable(); !reason.empty())
      return usage_error(fmt::format("method '{}' is not available: {}", method.name, reason));
  const auto run = run_of(method, parameters);
  if (!run) return run.error();
  Met met;
  PlacementRequest watched = request;
  watched.met = &met;
  auto result = (*run)(graph, watched, context);
  const bool cut = result && context.cancelled() && !stopped_early(*result);
  if (cut || (!result && result.error().code == ErrorCode::cancelled)) return stopped_without(method.name);
  if (!result) return result.error();
  result->method = method.name;
  // Reported is what the simulator says, also where the search went by persistent bytes alone.
  PlacementRequest simulated = request;
  simulated.objective = Objective::makespan;
  Judge judge(graph, simulated);
  auto verdict = judge.measure(result->placement);
  if (!verdict) return verdict.error();
  if (result->placement.order.empty()) judge.keep_order(result->placement);
  result->makespan_s = verdict->makespan_s;
  result->max_load_s = max_load_s(graph, result->placement);
  for (const SimulatedDevice& device : judge.simulation().devices) {
    result->busy_s.push_back(device.busy_s);
    result->persistent_bytes.push_back(device.persistent_bytes);
  }
  result->peak_bytes = verdict->peak_bytes;
  result->peak_communication_bytes = peak_communication(judge.simulation());
  if (request.objective == Objective::makespan && !verdict->peak_bytes.empty())
    result->others =
        others_of(met, *std::max_element(verdict->peak_bytes.begin(), verdict->peak_bytes.end()), verdict->makespan_s);
  result->shortage = verdict->shortage;
  if (result->shortage) {
    auto located = judge.locate_shortage(result->placement);
    if (!located) return located.error();
    result->shortage = *located;
  }
  result->search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace turnpoint::placement
