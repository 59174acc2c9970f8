// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/units.h"

#include <algorithm>
#include <numeric>

namespace turnpoint::placement {
namespace {

template <class Rows>
void into_rows(std::size_t count, Rows&& each_pair, std::vector<std::uint32_t>& begin,
               std::vector<std::uint32_t>& values) {
  begin.assign(count + 1, 0);
  each_pair([&](std::uint32_t row, std::uint32_t) { ++begin[row + 1]; });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  values.resize(begin.back());
  auto next = begin;
  each_pair([&](std::uint32_t row, std::uint32_t value) { values[next[row]++] = value; });
}

/// Tasks without time that have one reader and no maker (parameters), or one maker and no reader, are one unit with it:
/// apart they would only cost a transfer.
std::vector<TaskIndex> attachments(const TaskGraph& g, bool apart) {
  std::vector<TaskIndex> to(g.task_count());
  std::vector<std::uint32_t> members(g.groups.size(), 0);
  for (const std::uint32_t group : g.colocate)
    if (group != kNone) ++members[group];
  for (TaskIndex t = 0; t < to.size(); ++t) {
    to[t] = t;
    if (apart && g.persistent_bytes[t] > 0) continue;
    if (g.time_s[t] != 0 || (g.colocate[t] != kNone && members[g.colocate[t]] != 1)) continue;
    const auto makers = g.predecessors(t), readers = g.successors(t);
    if (makers.empty() && readers.size() == 1) to[t] = readers[0];
    // Of two such tasks that are each other's only neighbour one has to stay.
    if (makers.size() == 1 && readers.empty() && to[makers[0]] == makers[0]) to[t] = makers[0];
  }
  return to;
}

}  // namespace

Units make_units(const TaskGraph& g, bool apart) {
  Units u;
  const auto attached = attachments(g, apart);
  std::vector<std::uint32_t> of_group(g.groups.size(), kNone);
  u.of_task.assign(g.task_count(), kNone);
  const auto unit_of = [&](TaskIndex t) {
    const std::uint32_t group = g.colocate[t];
    std::uint32_t& unit = group == kNone ? u.of_task[t] : of_group[group];
    if (unit == kNone) {
      unit = std::uint32_t(u.time_s.size());
      u.time_s.push_back(0);
      u.persistent.push_back(0);
    }
    return unit;
  };
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    const std::uint32_t unit = u.of_task[t] = unit_of(attached[t]);
    u.time_s[unit] += g.time_s[t];
    u.persistent[unit] += g.persistent_bytes[t];
  }
  std::vector<std::uint32_t> row;
  u.consumer_begin.push_back(0);
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    row.clear();
    double transfer = 0;
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      const std::uint32_t to = u.of_task[g.out_to[e]];
      if (to == u.of_task[t]) continue;
      row.push_back(to);
      transfer = std::max(transfer, g.transfer_s(e, 0, g.links.size > 1 ? 1 : 0));
    }
    if (row.empty()) continue;
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    u.tensors.push_back({u.of_task[t], transfer});
    u.consumers.insert(u.consumers.end(), row.begin(), row.end());
    u.consumer_begin.push_back(std::uint32_t(u.consumers.size()));
  }
  const auto pairs = [&](auto&& body, bool of_tensors) {
    for (std::uint32_t i = 0; i < u.tensors.size(); ++i) {
      const std::uint32_t producer = u.tensors[i].producer;
      if (of_tensors) body(producer, i);
      for (std::uint32_t k = u.consumer_begin[i]; k < u.consumer_begin[i + 1]; ++k) {
        body(u.consumers[k], of_tensors ? i : producer);
        if (!of_tensors) body(producer, u.consumers[k]);
      }
    }
  };
  into_rows(
      u.time_s.size(), [&](auto&& body) { pairs(body, true); }, u.touched_begin, u.touched);
  into_rows(
      u.time_s.size(), [&](auto&& body) { pairs(body, false); }, u.neighbour_begin, u.neighbours);
  return u;
}

}  // namespace turnpoint::placement
