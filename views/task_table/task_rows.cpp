// SPDX-License-Identifier: Apache-2.0
#include "views/task_table/task_rows.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

namespace turnpoint::views {
namespace {

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ' && !words.back().empty()) words.emplace_back();
    if (c != ' ') words.back() += char(std::tolower(static_cast<unsigned char>(c)));
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// `word` is in lower case. Only letters of ASCII have a case here, as names of tasks have.
bool holds(std::string_view text, const std::string& word) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

std::vector<TaskIndex> kept_tasks(const TaskGraph& g, const std::vector<std::string>& words) {
  std::vector<TaskIndex> tasks;
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    const bool kept = std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return holds(g.names[t], word) || holds(g.scopes[g.scope[t]], word) || holds(to_string(g.kind[t]), word);
    });
    if (kept) tasks.push_back(t);
  }
  return tasks;
}

/// Equal keys keep the order of tasks, in both directions.
template <class Key>
void sort_by(std::vector<TaskIndex>& tasks, bool descending, Key&& key) {
  std::stable_sort(tasks.begin(), tasks.end(),
                   [&](TaskIndex a, TaskIndex b) { return descending ? key(b) < key(a) : key(a) < key(b); });
}

void sort_tasks(TaskRows& rows) {
  const Schedule& s = *rows.request.schedule;
  const TaskGraph& g = *s.graph;
  const bool down = rows.request.descending;
  switch (rows.request.sorted_by) {
    case TaskColumn::name: return sort_by(rows.tasks, down, [&](TaskIndex t) { return g.names[t]; });
    case TaskColumn::kind: return sort_by(rows.tasks, down, [&](TaskIndex t) { return int(g.kind[t]); });
    case TaskColumn::scope: return sort_by(rows.tasks, down, [&](TaskIndex t) { return g.scopes[g.scope[t]]; });
    case TaskColumn::device: return sort_by(rows.tasks, down, [&](TaskIndex t) { return s.device_of[t]; });
    case TaskColumn::duration: return sort_by(rows.tasks, down, [&](TaskIndex t) { return task_duration_s(s, t); });
    case TaskColumn::output: return sort_by(rows.tasks, down, [&](TaskIndex t) { return g.output_bytes[t]; });
    case TaskColumn::persistent: return sort_by(rows.tasks, down, [&](TaskIndex t) { return g.persistent_bytes[t]; });
    case TaskColumn::sent: return sort_by(rows.tasks, down, [&](TaskIndex t) { return rows.sent_bytes[t]; });
    case TaskColumn::critical: return sort_by(rows.tasks, down, [&](TaskIndex t) { return !rows.critical[t]; });
    default: return sort_by(rows.tasks, down, [&](TaskIndex t) { return task_start_s(s, t); });
  }
}

void add_up_transfers(TaskRows& rows) {
  const Schedule& s = *rows.request.schedule;
  rows.sent_bytes.assign(s.graph->task_count(), 0);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> between;
  for (std::uint32_t item = 0; item < s.item_count(); ++item) {
    if (!s.is_transfer(item)) continue;
    rows.sent_bytes[s.task[item]] += s.bytes[item];
    between[{s.device_of[s.task[item]], s.peer[item]}] += s.bytes[item];
  }
  for (const auto& [pair, bytes] : between)
    if (bytes > rows.peak_communication_bytes) {
      rows.peak_communication_bytes = bytes;
      std::tie(rows.peak_from, rows.peak_to) = pair;
    }
}

}  // namespace

double task_start_s(const Schedule& schedule, TaskIndex task) {
  const std::uint32_t item = schedule.item_of[task];
  return item == kNone ? 0 : schedule.start_s[item];
}

double task_duration_s(const Schedule& schedule, TaskIndex task) {
  const std::uint32_t item = schedule.item_of[task];
  return item == kNone ? 0 : schedule.end_s[item] - schedule.start_s[item];
}

TaskRowsPtr make_task_rows(TaskRowsRequest request) {
  auto rows = std::make_shared<TaskRows>();
  rows->request = std::move(request);
  if (!rows->request.schedule) return rows;
  const Schedule& s = *rows->request.schedule;
  const std::size_t count = s.graph->task_count();
  rows->critical.assign(count, false);
  for (const std::uint32_t item : s.critical)
    if (!s.is_transfer(item)) rows->critical[s.task[item]] = true;
  for (TaskIndex t = 0; t < count; ++t) rows->longest_s = std::max(rows->longest_s, task_duration_s(s, t));
  rows->tasks = kept_tasks(*s.graph, split_words(rows->request.words));
  // Where nothing takes time, times are not what the rows are about.
  if (!rows->request.without_time && rows->longest_s > 0)
    std::erase_if(rows->tasks, [&](TaskIndex t) { return task_duration_s(s, t) <= 0; });
  add_up_transfers(*rows);
  sort_tasks(*rows);
  rows->row_of.assign(count, kNone);
  for (std::uint32_t row = 0; row < rows->tasks.size(); ++row) {
    rows->row_of[rows->tasks[row]] = row;
    rows->shown_s += task_duration_s(s, rows->tasks[row]);
  }
  return rows;
}

}  // namespace turnpoint::views
