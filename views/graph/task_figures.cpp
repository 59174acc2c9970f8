// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_figures.h"

#include <algorithm>
#include <numeric>

#include "views/common/format.h"

namespace turnpoint::views {

namespace {

/// A child with more of the tasks than this is looked into for the layers.
constexpr double kDominant = 0.6;

void find_scopes(TaskFigures& figures) {
  const TaskHierarchy& h = *figures.hierarchy;
  for (bool again = true; again;) {
    again = false;
    for (const auto& child : h.children_of(figures.scope_group))
      if (child.is_group && h.groups[child.index].tasks() > kDominant * h.groups[0].tasks() &&
          h.groups[child.index].made != TaskHierarchy::Made::fold) {
        figures.scope_group = child.index;
        again = true;
        break;
      }
  }
  figures.scope_slot.assign(h.order.size(), std::uint8_t(kOtherDevice));
  const auto children = h.children_of(figures.scope_group);
  for (std::size_t c = 0; c < children.size(); ++c) {
    const auto slot = std::uint8_t(children.size() <= kOtherDevice ? c : c * kOtherDevice / children.size());
    const std::uint32_t begin =
        children[c].is_group ? h.groups[children[c].index].task_begin : h.position[children[c].index];
    const std::uint32_t end = children[c].is_group ? h.groups[children[c].index].task_end : begin + 1;
    std::fill(figures.scope_slot.begin() + begin, figures.scope_slot.begin() + end, slot);
  }
}

void find_critical_path(TaskFigures& figures) {
  const TaskHierarchy& h = *figures.hierarchy;
  const TaskGraph& graph = figures.graph();
  const Schedule& schedule = *figures.schedule;
  std::vector<bool> critical(h.order.size(), false);
  figures.critical_edge.assign(h.edges.size(), false);
  TaskIndex before = kNone;
  for (const std::uint32_t item : schedule.critical) {
    const TaskIndex task = schedule.task[item];
    if (task == kNone) continue;
    if (!schedule.is_transfer(item)) {
      critical[h.position[task]] = true;
      if (before != kNone) {
        const auto row = graph.successors(before);
        const auto at = std::lower_bound(row.begin(), row.end(), task);
        if (at != row.end() && *at == task)
          figures.critical_edge[h.edge_of[graph.out_begin[before] + std::size_t(at - row.begin())]] = true;
      }
    }
    before = task;
  }
  figures.critical_before.assign(h.order.size() + 1, 0);
  figures.critical_s.assign(h.order.size() + 1, 0);
  for (std::size_t p = 0; p < critical.size(); ++p) {
    figures.critical_before[p + 1] = figures.critical_before[p] + (critical[p] ? 1 : 0);
    figures.critical_s[p + 1] = figures.critical_s[p] + (critical[p] ? graph.time_s[h.order[p]] : 0);
  }
}

void find_clusters(TaskFigures& figures) {
  const auto& of = figures.schedule->cluster_of;
  if (of.empty()) return;
  const TaskHierarchy& h = *figures.hierarchy;
  figures.clusters = 1 + *std::max_element(of.begin(), of.end());
  std::vector<double> seconds(figures.clusters, 0);
  for (TaskIndex t = 0; t < of.size(); ++t) seconds[of[t]] += figures.graph().time_s[t];
  std::vector<std::uint32_t>& named = figures.named_clusters;
  named.resize(figures.clusters);
  std::iota(named.begin(), named.end(), 0u);
  std::stable_sort(named.begin(), named.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return seconds[a] > seconds[b]; });
  named.resize(std::min<std::size_t>(named.size(), kOtherDevice));
  std::vector<std::uint8_t> slot(figures.clusters, std::uint8_t(kOtherDevice));
  for (std::size_t s = 0; s < named.size(); ++s) slot[named[s]] = std::uint8_t(s);
  for (const TaskIndex t : h.order) figures.cluster_slot.push_back(slot[of[t]]);
}

}  // namespace

TaskFiguresPtr make_task_figures(TaskHierarchyPtr hierarchy, SchedulePtr schedule) {
  auto figures = std::make_shared<TaskFigures>();
  figures->hierarchy = std::move(hierarchy);
  figures->schedule = std::move(schedule);
  const TaskHierarchy& h = *figures->hierarchy;
  const TaskGraph& graph = *h.graph;
  const bool no_bytes = std::all_of(h.edges.begin(), h.edges.end(), [](const auto& e) { return e.bytes() == 0; });
  figures->edges_in_seconds = !graph.out_seconds.empty() && no_bytes;
  for (const auto& edge : h.edges) figures->weight_total += figures->weight(edge);
  find_scopes(*figures);
  if (!figures->schedule) return figures;
  const auto& device_of = figures->schedule->device_of;
  if (figures->edges_in_seconds || graph.out_seconds.empty()) {
    figures->cut = cut_weights(h, device_of);
  } else {
    figures->cut.assign(h.edges.size(), 0);
    for (TaskIndex t = 0; t < graph.task_count(); ++t)
      for (EdgeIndex e = graph.out_begin[t]; e < graph.out_begin[t + 1]; ++e)
        if (device_of[t] != device_of[graph.out_to[e]]) figures->cut[h.edge_of[e]] += double(graph.out_bytes[e]);
  }
  for (const double cut : figures->cut) figures->cut_total += cut;
  figures->load_s.assign(figures->schedule->devices.size(), 0);
  for (const auto& lane : figures->schedule->lanes)
    if (lane.kind == LaneKind::compute && lane.device < figures->load_s.size())
      figures->load_s[lane.device] += lane.busy_s;
  find_critical_path(*figures);
  find_clusters(*figures);
  return figures;
}

QString edge_weight_text(const TaskFigures& figures, double weight) {
  return figures.edges_in_seconds ? time_text(weight) : memory_text(static_cast<std::int64_t>(weight));
}

QString edge_weight_beside(const TaskFigures& figures, double weight, double largest) {
  return figures.edges_in_seconds ? time_beside(weight, largest) : bytes_beside(weight, largest);
}

std::int64_t task_bytes(const TaskGraph& graph, TaskIndex task) {
  return graph.output_bytes[task] + graph.persistent_bytes[task] + graph.workspace_bytes[task];
}

}  // namespace turnpoint::views
