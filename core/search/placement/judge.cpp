// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/judge.h"

#include <algorithm>
#include <utility>

#include "core/search/placement/met.h"

namespace turnpoint::placement {

bool Verdict::better_than(const Verdict& other, Objective objective) const {
  if (shortage.has_value() != other.shortage.has_value()) return !shortage.has_value();
  if (shortage && missing_bytes != other.missing_bytes) return missing_bytes < other.missing_bytes;
  return objective_s(objective) < other.objective_s(objective);
}

/// A pipeline that is always full holds its parameters on every device; what else it holds depends on how it is
/// filled, which the study leaves out, and so does this.
std::int64_t Judge::used(std::uint32_t device) const {
  const SimulatedDevice& d = simulation_.devices[device];
  return request_.objective == Objective::max_load ? d.persistent_bytes : d.peak_bytes;
}

Expected<Verdict> Judge::measure(const Placement& placement, bool memory) {
  static const std::string kWhere = "placement found by the search";
  if (auto done = simulator_.run(graph_, placement, simulation_, memory, kWhere); !done) return done.error();
  if (auto good = check_colocation(graph_, placement, kWhere); !good) return good.error();
  Verdict verdict;
  verdict.makespan_s = simulation_.makespan_s;
  if (request_.objective == Objective::max_load) verdict.max_load_s = max_load_s(graph_, placement);
  for (std::uint32_t d = 0; d < placement.devices; ++d) {
    const std::int64_t bytes = used(d), limit = request_.limit_of(graph_, d);
    verdict.peak_bytes.push_back(bytes);
    if (bytes <= limit) continue;
    verdict.missing_bytes += bytes - limit;
    if (!verdict.shortage || verdict.shortage->bytes < bytes - limit)
      verdict.shortage = PlacementShortage{d, simulation_.devices[d].peak_at_s, bytes - limit};
  }
  if (request_.met && request_.objective == Objective::makespan) tell(placement);
  return verdict;
}

void Judge::tell(const Placement& placement) const {
  std::int64_t most = 0;
  for (const SimulatedDevice& device : simulation_.devices) most = std::max(most, device.peak_bytes);
  if (!request_.met->wants(most, simulation_.makespan_s)) return;
  Met::Point point{most, simulation_.makespan_s, placement};
  if (point.placement.order.empty()) keep_order(point.placement);
  request_.met->offer(std::move(point));
}

Expected<Verdict> Judge::measure(const Placement& placement) { return measure(placement, false); }
Expected<Verdict> Judge::measure_memory(const Placement& placement) { return measure(placement, true); }

void Judge::keep_order(Placement& placement) const {
  placement.order.resize(placement.devices);
  for (std::uint32_t d = 0; d < placement.devices; ++d) {
    const auto run = simulation_.run_on(d);
    placement.order[d].assign(run.begin(), run.end());
  }
}

Expected<PlacementShortage> Judge::locate_shortage(const Placement& placement) {
  auto verdict = measure(placement, true);
  if (!verdict) return verdict.error();
  PlacementShortage worst = *verdict->shortage;
  const std::int64_t limit = request_.limit_of(graph_, worst.device);
  const SimulatedDevice& device = simulation_.devices[worst.device];
  if (device.persistent_bytes > limit) {
    worst.time_s = 0;
    return worst;
  }
  for (const MemorySample& sample : simulation_.memory[worst.device])
    if (device.persistent_bytes + sample.activation_bytes + sample.copy_bytes + sample.workspace_bytes > limit) {
      worst.time_s = sample.time_s;
      break;
    }
  return worst;
}

}  // namespace turnpoint::placement
