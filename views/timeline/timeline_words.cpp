// SPDX-License-Identifier: Apache-2.0
#include "views/timeline/timeline_words.h"

#include <algorithm>
#include <cctype>

#include "views/common/format.h"
#include "views/time/time_axis.h"

namespace turnpoint::views {

namespace {

constexpr std::size_t kLongestName = 400;

/// Enough decimals to tell the item's ends apart.
double resolution(const Schedule& s, std::uint32_t item) {
  const double duration = s.end_s[item] - s.start_s[item];
  return (duration > 0 ? duration : s.makespan_s) * 1e-3;
}

}  // namespace

QString device_words(const Schedule& schedule, std::uint32_t device) {
  const Schedule::Device& d = schedule.devices[device];
  const QString name = to_qt(d.name);
  return d.stands_for > 1 ? timeline_text("%1 (%2 alike)").arg(name).arg(d.stands_for) : name;
}

QString kind_word(const TimelineSummary& summary, std::uint32_t item) {
  const Schedule& s = *summary.schedule();
  switch (s.lanes[summary.lane_of(item)].kind) {
    case LaneKind::send: return timeline_text("transfer");
    case LaneKind::communication:
    case LaneKind::network: return s.is_transfer(item) ? timeline_text("transfer") : timeline_text("collective");
    case LaneKind::compute: break;
  }
  switch (s.graph->kind[s.task[item]]) {
    case TaskKind::forward: return timeline_text("forward");
    case TaskKind::backward: return timeline_text("backward");
    case TaskKind::update: return timeline_text("update");
    case TaskKind::other: return timeline_text("computing");
  }
  return {};
}

HoverText item_hover(const TimelineSummary& summary, std::uint32_t item) {
  const Schedule& s = *summary.schedule();
  const TaskIndex task = s.task[item];
  const std::uint32_t device = s.lanes[summary.lane_of(item)].device;
  QString name = to_qt(std::string_view(s.graph->names[task]).substr(0, kLongestName));
  if (name.isEmpty()) name = timeline_text("task %1").arg(task);
  HoverText text{{name, time_text(s.end_s[item] - s.start_s[item])}};
  const QString scope = to_qt(std::string_view(s.graph->scopes[s.graph->scope[task]]).substr(0, kLongestName));
  const QString kind = kind_word(summary, item);
  text.push_back({scope.isEmpty() ? kind : kind + QStringLiteral(" \u00b7 ") + scope,
                  s.bytes[item] > 0 ? memory_text(s.bytes[item]) : QString()});
  if (s.is_transfer(item))
    text.push_back({device_words(s, device) + QStringLiteral(" \u2192 ") + device_words(s, s.peer[item]), {}});
  else
    text.push_back({device_words(s, device), {}});
  const double exact = resolution(s, item);
  text.push_back(
      {instant_text(s.start_s[item], exact) + QStringLiteral(" \u2192 ") + instant_text(s.end_s[item], exact), {}});
  if (!s.is_transfer(item)) {
    QStringList more;
    if (const std::int64_t out = s.graph->output_bytes[task]; out > 0)
      more << timeline_text("output %1").arg(memory_text(out));
    const auto items = summary.items_of(task);
    if (items.size() == 2) more << timeline_text("1 transfer");
    if (items.size() > 2) more << timeline_text("%1 transfers").arg(items.size() - 1);
    if (!more.isEmpty()) text.push_back({more.join(QStringLiteral(" \u00b7 ")), {}});
  }
  const auto& critical = summary.critical();
  if (std::binary_search(critical.begin(), critical.end(), summary.place_of(item)))
    text.push_back({timeline_text("on the critical path"), {}});
  return text;
}

HoverText device_hover(const TimelineSummary& summary, std::uint32_t device) {
  const Schedule& s = *summary.schedule();
  const Schedule::Device& d = s.devices[device];
  HoverText text{{device_words(s, device), {}}};
  for (const TimelineSummary::Lane& lane : summary.lanes_of(device)) {
    const QString word = lane.kind == LaneKind::compute ? timeline_text("computing")
                         : lane.kind == LaneKind::send    ? timeline_text("sending")
                         : lane.kind == LaneKind::network ? timeline_text("communicating between nodes")
                                                          : timeline_text("communicating inside nodes");
    const auto& items = s.lanes[std::size_t(&lane - summary.lanes().data())];
    QString share = time_text(lane.busy_s);
    if (s.makespan_s > 0) share += QStringLiteral(" \u00b7 ") + share_text(lane.busy_s / s.makespan_s);
    text.push_back(
        {word + QStringLiteral(" \u00b7 ") + timeline_text("%1 items").arg(grouped_number(items.end - items.begin, 0)),
         share});
  }
  text.push_back({timeline_text("peak memory at %1").arg(time_text(d.peak_at_s)), memory_text(d.peak_bytes)});
  if (d.memory_limit != kUnlimitedBytes) {
    text.push_back({timeline_text("device memory"), memory_text(d.memory_limit)});
    if (d.peak_bytes > d.memory_limit)
      text.push_back({timeline_text("missing"), memory_text(d.peak_bytes - d.memory_limit)});
  }
  return text;
}

HoverText idle_hover(const TimelineSummary& summary, std::uint32_t device, double instant) {
  const Schedule& s = *summary.schedule();
  double from = 0, to = s.makespan_s;
  for (const TimelineSummary::Lane& lane : summary.lanes_of(device)) {
    if (lane.kind != LaneKind::compute || lane.tracks == 0) continue;
    const auto& track = summary.track(lane.first_track);
    const std::uint32_t next = summary.first_ending_after(track, instant);
    if (next > track.begin) from = summary.end_s()[next - 1];
    if (next < track.end) to = summary.start_s()[next];
  }
  if (instant < 0 || instant > s.makespan_s || to <= from) return {};
  const double exact = (to - from) * 1e-3;
  return {{timeline_text("idle"), time_text(to - from)},
          {device_words(s, device), {}},
          {instant_text(from, exact) + QStringLiteral(" \u2192 ") + instant_text(to, exact), {}}};
}

std::vector<TaskIndex> find_tasks(const TimelineSummary& summary, const QString& text, std::size_t most) {
  const Schedule& s = *summary.schedule();
  std::vector<TaskIndex> found;
  std::string wanted = text.trimmed().toLower().toStdString();
  if (wanted.empty()) return found;
  const auto lower = [](char c) { return char(std::tolower(static_cast<unsigned char>(c))); };
  for (TaskIndex t = 0; t < s.graph->task_count(); ++t) {
    if (summary.items_of(t).empty()) continue;
    const std::string_view name = s.graph->names[t];
    const auto at = std::search(name.begin(), name.end(), wanted.begin(), wanted.end(),
                                [&](char a, char b) { return lower(a) == b; });
    if (at != name.end()) found.push_back(t);
  }
  std::stable_sort(found.begin(), found.end(), [&](TaskIndex a, TaskIndex b) {
    const auto start = [&](TaskIndex t) { return s.start_s[summary.items_of(t).front()]; };
    return start(a) < start(b);
  });
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace turnpoint::views
