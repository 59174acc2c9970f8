// SPDX-License-Identifier: Apache-2.0
#include "core/model/task_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "core/base/discard.h"

namespace turnpoint {
namespace {

constexpr std::size_t kNameInMessage = 60;

std::string quoted(std::string_view name) {
  if (name.size() <= kNameInMessage) return fmt::format("'{}'", name);
  return fmt::format("'{}...'", name.substr(0, kNameInMessage));
}

/// Why a number of seconds is refused; empty if it is not.
std::string seconds_fault(double seconds) {
  if (std::isnan(seconds)) return "is not a number";
  if (seconds < 0) return fmt::format("is negative ({})", seconds);
  if (seconds > TaskGraphBuilder::kMaxSeconds)
    return fmt::format("is absurdly large ({}; at most {:g} s)", seconds, TaskGraphBuilder::kMaxSeconds);
  return {};
}

std::string bytes_fault(std::int64_t bytes) {
  if (bytes < 0) return fmt::format("is negative ({})", bytes);
  if (bytes > TaskGraphBuilder::kMaxBytes) return fmt::format("is absurdly large ({}; at most 2^53)", bytes);
  return {};
}

/// One of the cycles among the tasks that still have `waiting` inputs, producers first.
std::vector<TaskIndex> find_cycle(const TaskGraph& graph, const std::vector<std::uint32_t>& waiting) {
  TaskIndex task = 0;
  while (waiting[task] == 0) ++task;
  // Walking to any producer that also waits must come back to a task already seen.
  std::vector<std::uint32_t> seen_at(graph.task_count(), kNone);
  std::vector<TaskIndex> walk;
  while (seen_at[task] == kNone) {
    seen_at[task] = std::uint32_t(walk.size());
    walk.push_back(task);
    for (const TaskIndex from : graph.predecessors(task))
      if (waiting[from] != 0) {
        task = from;
        break;
      }
  }
  std::vector<TaskIndex> cycle(walk.begin() + seen_at[task], walk.end());
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

std::string describe_cycle(const TaskGraph& graph, const std::vector<TaskIndex>& cycle) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, cycle.size()); ++i) text += graph.describe(cycle[i]) + " -> ";
  if (cycle.size() > kShown) text += fmt::format("{} more -> ", cycle.size() - kShown);
  return text + graph.describe(cycle.front());
}

}  // namespace

const char* to_string(TaskKind kind) {
  switch (kind) {
    case TaskKind::forward: return "forward";
    case TaskKind::backward: return "backward";
    case TaskKind::update: return "update";
    case TaskKind::other: break;
  }
  return "other";
}

std::uint32_t NamePool::add(std::string_view text) {
  characters_.append(text);
  begins_.push_back(characters_.size());
  return std::uint32_t(begins_.size() - 2);
}

void NamePool::reserve(std::size_t names, std::size_t characters) {
  begins_.reserve(names + 1);
  characters_.reserve(characters);
}

std::uint32_t TaskGraph::device_limit() const {
  std::uint32_t limit = kNone;
  if (links.size != 0) limit = links.size;
  if (!devices.empty()) limit = std::min(limit, std::uint32_t(devices.size()));
  return limit;
}

std::string TaskGraph::describe(TaskIndex task) const { return fmt::format("task {} {}", task, quoted(names[task])); }

void SentBytes::add_other(std::uint32_t tensor, std::int64_t bytes) {
  auto other = std::find_if(others_.begin(), others_.end(), [&](const auto& o) { return o.first == tensor; });
  if (other == others_.end()) other = others_.insert(other, {tensor, 0});
  const std::int64_t more = std::max<std::int64_t>(0, bytes - other->second);
  other->second += more;
  other_bytes_ += more;
}

TaskGraphBuilder::TaskGraphBuilder() : graph_(std::make_shared<TaskGraph>()) { scope(""); }

void TaskGraphBuilder::reserve(std::size_t tasks, std::size_t edges) {
  graph_->kind.reserve(tasks);
  graph_->time_s.reserve(tasks);
  graph_->output_bytes.reserve(tasks);
  graph_->persistent_bytes.reserve(tasks);
  graph_->workspace_bytes.reserve(tasks);
  graph_->colocate.reserve(tasks);
  graph_->scope.reserve(tasks);
  edges_.reserve(edges);
}

std::uint32_t TaskGraphBuilder::group(std::string_view group_name) {
  const auto [place, added] = group_index_.try_emplace(std::string(group_name), std::uint32_t(graph_->groups.size()));
  if (added) graph_->groups.add(group_name);
  return place->second;
}

std::uint32_t TaskGraphBuilder::scope(std::string_view path) {
  const auto [place, added] = scope_index_.try_emplace(std::string(path), std::uint32_t(graph_->scopes.size()));
  if (added) graph_->scopes.add(path);
  return place->second;
}

TaskIndex TaskGraphBuilder::add_task(const Task& task) {
  graph_->kind.push_back(task.kind);
  graph_->time_s.push_back(task.time_s);
  graph_->output_bytes.push_back(task.output_bytes);
  graph_->persistent_bytes.push_back(task.persistent_bytes);
  graph_->workspace_bytes.push_back(task.workspace_bytes);
  graph_->colocate.push_back(task.colocate);
  graph_->scope.push_back(task.scope);
  graph_->names.add(task.name);
  return TaskIndex(graph_->time_s.size() - 1);
}

Expected<void> TaskGraphBuilder::check_tasks(const std::string& where) const {
  const TaskGraph& g = *graph_;
  if (g.task_count() == 0) return bad_input("the graph has no tasks", where);
  if (g.task_count() > kMaxTasks)
    return bad_input(fmt::format("{} tasks are too many (at most {})", g.task_count(), kMaxTasks), where);
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    const auto refuse = [&](const char* what, const std::string& fault) {
      return bad_input(fmt::format("{} of {} {}", what, g.describe(t), fault), where);
    };
    if (const auto fault = seconds_fault(g.time_s[t]); !fault.empty()) return refuse("time_s", fault);
    if (const auto fault = bytes_fault(g.output_bytes[t]); !fault.empty()) return refuse("output_bytes", fault);
    if (const auto fault = bytes_fault(g.persistent_bytes[t]); !fault.empty()) return refuse("persistent_bytes", fault);
    if (const auto fault = bytes_fault(g.workspace_bytes[t]); !fault.empty()) return refuse("workspace_bytes", fault);
    if (g.colocate[t] != kNone && g.colocate[t] >= g.groups.size()) return refuse("colocate", "names no group");
    if (g.scope[t] >= g.scopes.size()) return refuse("scope", "names no scope");
  }
  return {};
}

Expected<void> TaskGraphBuilder::check_links(const std::string& where) const {
  constexpr double kLeastBandwidth = 1e-6, kMostBandwidth = 1e24;
  const auto bandwidth_ok = [](double b) { return b >= kLeastBandwidth && b <= kMostBandwidth; };
  const auto square = [&](const std::vector<double>& matrix) {
    return matrix.empty() || matrix.size() == std::size_t(links.size) * links.size;
  };
  if (links.size > kMaxDevices || devices.size() > kMaxDevices)
    return bad_input(fmt::format("more than {} devices", kMaxDevices), where);
  if (!square(links.bandwidths) || !square(links.latencies))
    return bad_input("the matrices of links are not square and of one size", where);
  if (!bandwidth_ok(links.bandwidth))
    return bad_input(
        fmt::format("bandwidth_bytes_per_s of links is {} (above 0 and finite is needed)", links.bandwidth), where);
  if (const auto fault = seconds_fault(links.latency); !fault.empty())
    return bad_input("latency_s of links " + fault, where);
  for (std::uint32_t from = 0; from < links.size; ++from)
    for (std::uint32_t to = 0; to < links.size; ++to) {
      if (from == to) continue;
      if (!bandwidth_ok(links.bandwidth_of(from, to)))
        return bad_input(fmt::format("bandwidth_bytes_per_s from device {} to {} is {} (above 0 and finite is needed)",
                                     from, to, links.bandwidth_of(from, to)),
                         where);
      if (const auto fault = seconds_fault(links.latency_of(from, to)); !fault.empty())
        return bad_input(fmt::format("latency_s from device {} to {} {}", from, to, fault), where);
    }
  for (std::size_t d = 0; d <= devices.size(); ++d) {
    const TaskDevice& device = d < devices.size() ? devices[d] : alike;
    if (!(device.speed >= 1e-12 && device.speed <= 1e12))
      return bad_input(fmt::format("speed of device {} is {} (between 1e-12 and 1e12 is needed)", d, device.speed),
                       where);
    if (device.memory_bytes < 0)
      return bad_input(fmt::format("memory_bytes of device {} is negative ({})", d, device.memory_bytes), where);
  }
  return {};
}

Expected<void> TaskGraphBuilder::check_edges(const std::string& where) const {
  const TaskGraph& g = *graph_;
  const auto tasks = std::int64_t(g.task_count());
  if (edges_.size() > kMaxEdges)
    return bad_input(fmt::format("{} edges are too many (at most {})", edges_.size(), kMaxEdges), where);
  const bool timed = !edges_.empty() && edges_.front().seconds != kNoSeconds;
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const Edge& edge = edges_[e];
    for (const auto end : {edge.from, edge.to})
      if (end < 0 || end >= tasks)
        return bad_input(fmt::format("edge {} ({} -> {}) names a task that does not exist: there are {} tasks", e,
                                     edge.from, edge.to, tasks),
                         where);
    if (edge.bytes != kProducerBytes)
      if (const auto fault = bytes_fault(edge.bytes); !fault.empty())
        return bad_input(fmt::format("bytes of edge {} ({} -> {}) {}", e, edge.from, edge.to, fault), where);
    if (edge.seconds == kNoSeconds ? timed : !timed)
      return bad_input(
          fmt::format("edge {} ({} -> {}): either all edges state seconds or none does", e, edge.from, edge.to), where);
    if (timed)
      if (const auto fault = seconds_fault(edge.seconds); !fault.empty())
        return bad_input(fmt::format("cost of edge {} ({} -> {}) {}", e, edge.from, edge.to, fault), where);
  }
  return {};
}

void TaskGraphBuilder::build_rows() {
  TaskGraph& g = *graph_;
  const std::size_t tasks = g.task_count();
  const bool timed = !edges_.empty() && edges_.front().seconds != kNoSeconds;
  // By source through counting, then each row by destination; repeated edges collapse into the larger one.
  std::vector<EdgeIndex> begin(tasks + 1, 0);
  for (const Edge& edge : edges_) ++begin[std::size_t(edge.from) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<EdgeIndex> sorted(edges_.size());
  {
    auto next = begin;
    for (EdgeIndex e = 0; e < edges_.size(); ++e) sorted[next[std::size_t(edges_[e].from)]++] = e;
  }
  g.out_begin.assign(tasks + 1, 0);
  g.out_to.clear();
  g.out_to.reserve(edges_.size());
  g.out_bytes.reserve(edges_.size());
  if (timed) g.out_seconds.reserve(edges_.size());
  if (several_) g.out_tensor.reserve(edges_.size());
  for (TaskIndex t = 0; t < tasks; ++t) {
    const auto row = sorted.begin() + begin[t], row_end = sorted.begin() + begin[t + 1];
    std::sort(row, row_end, [&](EdgeIndex a, EdgeIndex b) {
      return edges_[a].to != edges_[b].to ? edges_[a].to < edges_[b].to : a < b;
    });
    for (auto e = row; e != row_end; ++e) {
      const Edge& edge = edges_[*e];
      const std::int64_t bytes = edge.bytes == kProducerBytes ? g.output_bytes[t] : edge.bytes;
      if (e != row && g.out_to.back() == TaskIndex(edge.to)) {
        g.out_bytes.back() = std::max(g.out_bytes.back(), bytes);
        if (timed) g.out_seconds.back() = std::max(g.out_seconds.back(), edge.seconds);
        continue;
      }
      g.out_to.push_back(TaskIndex(edge.to));
      g.out_bytes.push_back(bytes);
      if (timed) g.out_seconds.push_back(edge.seconds);
      if (several_) g.out_tensor.push_back(edge.tensor);
    }
    g.out_begin[t + 1] = EdgeIndex(g.out_to.size());
  }
  g.out_to.shrink_to_fit();
  g.out_bytes.shrink_to_fit();

  g.in_begin.assign(tasks + 1, 0);
  for (const TaskIndex to : g.out_to) ++g.in_begin[to + 1];
  std::partial_sum(g.in_begin.begin(), g.in_begin.end(), g.in_begin.begin());
  g.in_from.resize(g.out_to.size());
  g.in_edge.resize(g.out_to.size());
  auto next = g.in_begin;
  for (TaskIndex t = 0; t < tasks; ++t)
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      const EdgeIndex place = next[g.out_to[e]]++;
      g.in_from[place] = t;
      g.in_edge[place] = e;
    }
}

Expected<void> TaskGraphBuilder::check_totals(const std::string& where) const {
  const TaskGraph& g = *graph_;
  // Each addend is at most 2^53 and there are fewer than 2^31 of them: doubles are exact enough to compare with 2^62.
  double total = 0;
  for (const auto* bytes : {&g.output_bytes, &g.persistent_bytes, &g.workspace_bytes, &g.out_bytes})
    for (const std::int64_t b : *bytes) total += double(b);
  if (total > double(kMaxTotalBytes))
    return bad_input(fmt::format("the bytes of all tasks and edges together overflow ({:g})", total), where);
  return {};
}

Expected<void> TaskGraphBuilder::sort_topologically(const std::string& where) {
  TaskGraph& g = *graph_;
  const std::size_t tasks = g.task_count();
  std::vector<std::uint32_t> waiting(tasks);
  bool ascending = true;
  for (TaskIndex t = 0; t < tasks; ++t) {
    waiting[t] = g.in_begin[t + 1] - g.in_begin[t];
    for (const TaskIndex to : g.successors(t)) ascending &= to > t;
  }
  if (ascending) {
    g.topological.resize(tasks);
    std::iota(g.topological.begin(), g.topological.end(), TaskIndex(0));
    return {};
  }
  std::priority_queue<TaskIndex, std::vector<TaskIndex>, std::greater<>> ready;
  for (TaskIndex t = 0; t < tasks; ++t)
    if (waiting[t] == 0) ready.push(t);
  g.topological.reserve(tasks);
  while (!ready.empty()) {
    const TaskIndex t = ready.top();
    ready.pop();
    g.topological.push_back(t);
    for (const TaskIndex to : g.successors(t))
      if (--waiting[to] == 0) ready.push(to);
  }
  if (g.topological.size() == tasks) return {};
  return bad_input("the tasks form a cycle: " + describe_cycle(g, find_cycle(g, waiting)), where);
}

Expected<TaskGraphPtr> TaskGraphBuilder::finish(const std::string& where) {
  for (const auto check :
       {&TaskGraphBuilder::check_tasks, &TaskGraphBuilder::check_links, &TaskGraphBuilder::check_edges})
    if (auto done = (this->*check)(where); !done) return done.error();
  build_rows();
  if (auto done = check_totals(where); !done) return done.error();
  free_memory(edges_);
  if (auto done = sort_topologically(where); !done) return done.error();
  graph_->links = std::move(links);
  graph_->devices = std::move(devices);
  graph_->alike = alike;
  graph_->intended_devices = intended_devices;
  graph_->name = std::move(name);
  TaskGraphPtr result = std::move(graph_);
  *this = TaskGraphBuilder();
  return result;
}

}  // namespace turnpoint
