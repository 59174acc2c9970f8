// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_hover.h"

#include <algorithm>

#include "views/common/format.h"

namespace turnpoint::views {

namespace {

constexpr std::size_t kNamedTensors = 2, kNamedDevices = 3;
constexpr qsizetype kLongestName = 44;

QString count(std::size_t n) { return grouped_number(double(n), 0); }

QString shortened(const QString& text) {
  if (text.size() <= kLongestName) return text;
  return text.left(kLongestName / 2 - 1) + QChar(0x2026) + text.right(kLongestName / 2);
}

QString task_name(const TaskFigures& figures, TaskIndex task) { return to_qt(figures.graph().names[task]); }

struct Tensor {
  double weight = 0;
  TaskIndex other = kNone;
};

/// "3 inputs, 12 MiB: from a 8 MiB, b 4 MiB"
HoverRow tensors_row(const TaskFigures& figures, std::vector<Tensor> tensors, const QString& title) {
  double sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.weight;
  const std::size_t named = std::min(kNamedTensors, tensors.size());
  std::partial_sort(
      tensors.begin(), tensors.begin() + std::ptrdiff_t(named), tensors.end(),
      [](const Tensor& a, const Tensor& b) { return std::pair(-a.weight, a.other) < std::pair(-b.weight, b.other); });
  QStringList names;
  for (std::size_t i = 0; i < named; ++i) {
    const QString name = shortened(task_name(figures, tensors[i].other));
    names << (tensors.size() == 1 ? name : name + QLatin1Char(' ') + edge_weight_text(figures, tensors[i].weight));
  }
  if (tensors.size() > named) names << QString(QChar(0x2026));
  return {title.arg(count(tensors.size())) + QStringLiteral(": ") + names.join(QStringLiteral(", ")),
          edge_weight_text(figures, sum)};
}

double edge_weight(const TaskFigures& figures, EdgeIndex edge) {
  return figures.edges_in_seconds ? figures.graph().out_seconds[edge] : double(figures.graph().out_bytes[edge]);
}

/// All that crosses the border of a stretch of the hierarchy's order.
void add_border(HoverText& text, const TaskFigures& figures, std::uint32_t begin, std::uint32_t end) {
  const TaskHierarchy& h = *figures.hierarchy;
  const TaskGraph& graph = figures.graph();
  std::vector<Tensor> in, out;
  const auto inside = [&](TaskIndex t) { return h.position[t] >= begin && h.position[t] < end; };
  for (std::uint32_t p = begin; p < end; ++p) {
    const TaskIndex task = h.order[p];
    for (EdgeIndex e = graph.out_begin[task]; e < graph.out_begin[task + 1]; ++e)
      if (!inside(graph.out_to[e])) out.push_back({edge_weight(figures, e), graph.out_to[e]});
    for (EdgeIndex i = graph.in_begin[task]; i < graph.in_begin[task + 1]; ++i)
      if (!inside(graph.in_from[i])) in.push_back({edge_weight(figures, graph.in_edge[i]), graph.in_from[i]});
  }
  if (!in.empty()) text.push_back(tensors_row(figures, std::move(in), task_text("reads %1 from")));
  if (!out.empty()) text.push_back(tensors_row(figures, std::move(out), task_text("sends %1 to")));
}

}  // namespace

QString kind_text(TaskKind kind) {
  switch (kind) {
    case TaskKind::forward: return task_text("forward");
    case TaskKind::backward: return task_text("backward");
    case TaskKind::update: return task_text("update");
    case TaskKind::other: return task_text("other");
  }
  return {};
}

QString device_text(const TaskFigures& figures, std::uint32_t device) {
  if (!figures.schedule || device >= figures.schedule->devices.size()) return task_text("no device");
  const QString name = to_qt(figures.schedule->devices[device].name);
  return name.isEmpty() ? task_text("device %1").arg(device) : name;
}

HoverText task_hover(const TaskFigures& figures, TaskIndex task) {
  const TaskGraph& graph = figures.graph();
  HoverText text{{task_name(figures, task), time_text(graph.time_s[task])}};
  const QString scope = to_qt(graph.scopes[graph.scope[task]]), kind = kind_text(graph.kind[task]);
  text.push_back({scope.isEmpty() ? kind : kind + QStringLiteral(" \u00b7 ") + scope, {}});
  if (figures.schedule) {
    const Schedule& schedule = *figures.schedule;
    const std::uint32_t item = task < schedule.item_of.size() ? schedule.item_of[task] : kNone;
    HoverRow row{device_text(figures, schedule.device_of[task]), {}};
    if (item != kNone)
      row.right = time_text(schedule.start_s[item]) + QStringLiteral(" \u2013 ") + time_text(schedule.end_s[item]);
    const std::uint32_t at = figures.hierarchy->position[task];
    if (figures.critical_tasks(at, at + 1) > 0)
      row.left += QStringLiteral(" \u00b7 ") + task_text("on the critical path");
    text.push_back(std::move(row));
  }
  QStringList bytes;
  if (graph.output_bytes[task] > 0) bytes << task_text("output %1").arg(memory_text(graph.output_bytes[task]));
  if (graph.persistent_bytes[task] > 0)
    bytes << task_text("persistent %1").arg(memory_text(graph.persistent_bytes[task]));
  if (graph.workspace_bytes[task] > 0) bytes << task_text("workspace %1").arg(memory_text(graph.workspace_bytes[task]));
  if (!bytes.isEmpty()) text.push_back({bytes.join(QStringLiteral(" \u00b7 ")), {}});
  if (graph.colocate[task] != kNone)
    text.push_back(
        {task_text("shares its device with group %1").arg(shortened(to_qt(graph.groups[graph.colocate[task]]))), {}});
  const std::uint32_t at = figures.hierarchy->position[task];
  add_border(text, figures, at, at + 1);
  return text;
}

HoverText group_hover(const TaskFigures& figures, std::uint32_t index) {
  const TaskHierarchy& h = *figures.hierarchy;
  const auto& group = h.groups[index];
  const QString path = to_qt(h.path(index));
  HoverText text{{path.isEmpty() ? to_qt(h.names[0]) : path, time_text(group.time_s())}};
  QStringList kinds;
  for (std::size_t k = 0; k < 4; ++k)
    if (group.tasks_of_kind[k] > 0) kinds << count(group.tasks_of_kind[k]) + QLatin1Char(' ') + kind_text(TaskKind(k));
  const std::int64_t bytes = group.output_bytes + group.persistent_bytes;
  text.push_back({task_text("%1 tasks: %2").arg(count(group.tasks()), kinds.join(QStringLiteral(", "))),
                  bytes > 0 ? memory_text(bytes) : QString()});
  const double forward = group.time_of_kind[std::size_t(TaskKind::forward)],
               backward = group.time_of_kind[std::size_t(TaskKind::backward)];
  if (forward > 0 && backward > 0)
    text.push_back({task_text("forward %1 \u00b7 backward %2").arg(time_text(forward), time_text(backward)), {}});
  if (figures.schedule) {
    const std::size_t devices = figures.schedule->devices.size();
    const auto sums = time_by_device(h, index, figures.schedule->device_of, devices + 1);
    std::vector<std::pair<double, std::uint32_t>> order;
    double total = 0;
    for (std::uint32_t d = 0; d < devices; ++d) {
      total += sums[d];
      if (sums[d] > 0) order.emplace_back(-sums[d], d);
    }
    std::sort(order.begin(), order.end());
    QStringList parts;
    for (std::size_t i = 0; i < std::min(kNamedDevices, order.size()); ++i)
      parts << device_text(figures, order[i].second) + QLatin1Char(' ') + share_text(-order[i].first / total);
    if (order.size() > kNamedDevices) parts << task_text("%1 more").arg(order.size() - kNamedDevices);
    if (!parts.isEmpty()) text.push_back({task_text("on %1").arg(parts.join(QStringLiteral(", "))), {}});
    if (const auto critical = figures.critical_tasks(group.task_begin, group.task_end); critical > 0)
      text.push_back({task_text("%1 tasks on the critical path").arg(count(critical)), {}});
  }
  add_border(text, figures, group.task_begin, group.task_end);
  return text;
}

HoverText line_hover(const TaskFigures& figures, std::uint32_t index) {
  const TaskHierarchy& h = *figures.hierarchy;
  const TaskGraph& graph = figures.graph();
  const auto& edge = h.edges[index];
  const auto owner = std::upper_bound(h.groups.begin(), h.groups.end(), index,
                                      [](std::uint32_t e, const auto& group) { return e < group.edge_end; });
  const auto children = h.children_of(std::uint32_t(owner - h.groups.begin()));
  const auto name = [&](std::uint32_t ordinal) {
    const auto& child = children[ordinal];
    return shortened(to_qt(child.is_group ? std::string(h.names[child.index]) : h.label(child.index)));
  };
  const QString arrow = QStringLiteral(" \u2192 "), from = name(edge.from), to = name(edge.to);
  HoverText text{
      {edge.there > 0 ? from + arrow + to : to + arrow + from, edge_weight_text(figures, figures.weight(edge))}};
  const auto one_way = [&](const QString& words, std::uint32_t n, std::int64_t bytes) {
    text.push_back(
        {task_text("%1: %2 tensors").arg(words, count(n)), figures.edges_in_seconds ? QString() : memory_text(bytes)});
  };
  if (edge.there > 0) one_way(edge.back > 0 ? task_text("forward") : from + arrow + to, edge.there, edge.bytes_there);
  if (edge.back > 0) one_way(edge.there > 0 ? task_text("backward") : to + arrow + from, edge.back, edge.bytes_back);
  if (!figures.cut.empty())
    text.push_back(figures.cut[index] > 0
                       ? HoverRow{task_text("of it between devices"), edge_weight_text(figures, figures.cut[index])}
                       : HoverRow{task_text("nothing crosses devices"), {}});
  if (!figures.critical_edge.empty() && figures.critical_edge[index])
    text.push_back({task_text("on the critical path"), {}});
  // The largest tensor on the way, looked for among the producers at the end with fewer tasks.
  Tensor largest;
  TaskIndex producer = kNone;
  const auto look = [&](const TaskHierarchy::Child& child) {
    const auto tasks = child.is_group ? h.tasks_of(child.index) : std::span(&h.order[h.position[child.index]], 1);
    for (const TaskIndex t : tasks)
      for (EdgeIndex e = graph.out_begin[t]; e < graph.out_begin[t + 1]; ++e)
        if (h.edge_of[e] == index && (producer == kNone || edge_weight(figures, e) > largest.weight))
          largest = {edge_weight(figures, e), graph.out_to[e]}, producer = t;
  };
  look(children[edge.from]), look(children[edge.to]);
  if (producer != kNone && edge.there + edge.back > 1)
    text.push_back(
        {task_text("largest: %1")
             .arg(shortened(task_name(figures, producer)) + arrow + shortened(task_name(figures, largest.other))),
         edge_weight_text(figures, largest.weight)});
  return text;
}

}  // namespace turnpoint::views
