// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/memory_bound.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/base/text.h"

namespace turnpoint::placement {
namespace {

/// Parameters by co-location group; tasks without one are groups of their own.
struct Groups {
  explicit Groups(const TaskGraph& graph) : bytes(graph.groups.size() + graph.task_count(), 0), graph_(graph) {
    for (TaskIndex t = 0; t < graph.task_count(); ++t) bytes[of(t)] += graph.persistent_bytes[t];
  }
  std::size_t of(TaskIndex t) const {
    return graph_.colocate[t] == kNone ? graph_.groups.size() + t : graph_.colocate[t];
  }
  std::vector<std::int64_t> bytes;

 private:
  const TaskGraph& graph_;
};

/// A task that takes no time begins and ends in one instant, of which only the end counts; neither does one so short
/// that adding its time to a late instant changes nothing.
class Durations {
 public:
  Durations(const TaskGraph& graph, std::uint32_t devices) : graph_(graph) {
    double slowest = graph.speed_of(0);
    for (std::uint32_t d = 0; d < devices; ++d) {
      slowest = std::min(slowest, graph.speed_of(d));
      fastest_ = std::max(fastest_, graph.speed_of(d));
    }
    const TaskLinks& links = graph.links;
    double latency = links.latency, bandwidth = links.bandwidth;
    for (const double l : links.latencies) latency = std::max(latency, l);
    for (const double b : links.bandwidths)
      if (b > 0) bandwidth = std::min(bandwidth, b);
    // Until the end there is always something that computes or is sent.
    for (const double seconds : graph.time_s) longest_ += seconds / slowest;
    for (EdgeIndex e = 0; e < graph.edge_count(); ++e)
      longest_ += graph.out_seconds.empty() ? latency + double(graph.out_bytes[e]) / bandwidth : graph.out_seconds[e];
  }
  bool takes_time(TaskIndex t) const { return graph_.time_s[t] / fastest_ > longest_ * 1e-15; }

 private:
  const TaskGraph& graph_;
  double fastest_ = 0, longest_ = 0;
};

/// On the task's device while it runs: what it makes, works with and reads, wherever that was made.
std::int64_t while_it_runs(const TaskGraph& graph, TaskIndex t) {
  std::int64_t bytes = graph.output_bytes[t] + graph.workspace_bytes[t];
  for (EdgeIndex i = graph.in_begin[t]; i < graph.in_begin[t + 1]; ++i)
    bytes += std::min(graph.out_bytes[graph.in_edge[i]], graph.output_bytes[graph.in_from[i]]);
  return bytes;
}

}  // namespace

std::string never_fits(const TaskGraph& graph, const PlacementRequest& request) {
  // Bounds are compared as doubles with a margin for their rounding: sums of limits need not fit an integer.
  constexpr double kRounding = 1 + 1e-9;
  std::int64_t largest = 0;
  double all = 0;
  for (std::uint32_t d = 0; d < request.devices; ++d) {
    const std::int64_t limit = request.limit_of(graph, d);
    if (limit == kUnlimitedBytes) return {};
    largest = std::max(largest, limit);
    all += double(limit);
  }
  const Groups groups(graph);
  const Durations durations(graph, request.devices);
  const bool parameters_alone = request.objective == Objective::max_load;
  double held = 0;
  for (TaskIndex t = 0; t < graph.task_count(); ++t) {
    held += double(graph.persistent_bytes[t]);
    if (!parameters_alone && graph.successors(t).empty() && durations.takes_time(t))
      held += double(graph.output_bytes[t]);
  }
  if (held > all * kRounding)
    return fmt::format("{} are held to the end, all devices together have {}", format_bytes(std::int64_t(held)),
                       format_bytes(std::int64_t(std::min(all, 4e18))));
  std::size_t alone = 0;
  for (std::size_t g = 0; g < groups.bytes.size(); ++g) {
    if (groups.bytes[g] > largest)
      return fmt::format("{} must be on one device, and none has more than {}", format_bytes(groups.bytes[g]),
                         format_bytes(largest));
    alone += groups.bytes[g] > largest / 2 ? 1 : 0;
  }
  if (alone > request.devices)
    return fmt::format("{} groups of tasks need more than half of a device each, and there are {} devices", alone,
                       request.devices);
  for (TaskIndex t = 0; !parameters_alone && t < graph.task_count(); ++t) {
    if (!durations.takes_time(t)) continue;
    const std::int64_t here = while_it_runs(graph, t);
    if (double(here) + double(groups.bytes[groups.of(t)]) > double(largest) * kRounding)
      return fmt::format("{} needs {} while it runs, and no device has more than {}", graph.describe(t),
                         format_bytes(here + groups.bytes[groups.of(t)]), format_bytes(largest));
  }
  return {};
}

}  // namespace turnpoint::placement
