// SPDX-License-Identifier: Apache-2.0
#include "views/timeline/timeline_summary.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace turnpoint::views {

std::shared_ptr<const TimelineSummary> TimelineSummary::make(SchedulePtr schedule) {
  if (!schedule) return nullptr;
  auto summary = std::make_shared<TimelineSummary>();
  summary->schedule_ = std::move(schedule);
  summary->place_lanes();
  summary->index_transfers();
  summary->color_kinds();
  summary->color_layers();
  summary->color_durations();
  summary->make_overview();
  return summary;
}

void TimelineSummary::place_lanes() {
  const Schedule& s = *schedule_;
  start_s_.reserve(s.item_count());
  end_s_.reserve(s.item_count());
  item_.reserve(s.item_count());
  place_.assign(s.item_count(), kNone);
  double busy = 0;
  for (const Schedule::Lane& from : s.lanes) {
    Lane lane;
    lane.device = from.device, lane.kind = from.kind;
    lane.first_track = std::uint32_t(tracks_.size());
    pack(lane, from.begin, from.end);
    lane.tracks = std::uint32_t(tracks_.size()) - lane.first_track;
    double reached = 0;
    for (std::uint32_t i = from.begin; i < from.end; ++i) {
      lane.busy_s += std::max(0.0, s.end_s[i] - std::max(s.start_s[i], reached));
      reached = std::max(reached, s.end_s[i]);
    }
    if (lane.kind == LaneKind::compute) busy += lane.busy_s;
    lanes_.push_back(lane);
  }
  lane_begin_.assign(s.devices.size() + 1, std::uint32_t(lanes_.size()));
  for (std::size_t l = lanes_.size(); l-- > 0;) lane_begin_[lanes_[l].device] = std::uint32_t(l);
  for (std::size_t d = s.devices.size(); d-- > 0;) lane_begin_[d] = std::min(lane_begin_[d], lane_begin_[d + 1]);
  if (s.makespan_s > 0 && !s.devices.empty()) busy_share_ = busy / (s.makespan_s * double(s.devices.size()));
  for (std::uint32_t place = 0; place < item_.size(); ++place) place_[item_[place]] = place;
  for (const std::uint32_t item : s.critical)
    if (item < place_.size()) critical_.push_back(place_[item]), path_.push_back(item);
  std::sort(critical_.begin(), critical_.end());
  for (std::uint32_t i = 0; i + 1 < path_.size(); ++i)
    if (lane_of(path_[i]) != lane_of(path_[i + 1])) critical_turns_.push_back(i);
}

/// First free track, lowest first, so that a lane without overlap is one track and stays in order.
void TimelineSummary::pack(Lane& lane, std::uint32_t begin, std::uint32_t end) {
  const Schedule& s = *schedule_;
  std::vector<std::vector<std::uint32_t>> tracks(1);
  std::vector<double> free_from(1, 0);
  bool fits = true;
  for (std::uint32_t i = begin; i < end && fits; ++i) {
    std::size_t t = 0;
    while (t < tracks.size() && free_from[t] > s.start_s[i]) ++t;
    if (t == tracks.size()) {
      fits = t < kMostTracks;
      if (!fits) break;
      tracks.emplace_back();
      free_from.push_back(0);
    }
    tracks[t].push_back(i);
    free_from[t] = s.end_s[i];
  }
  if (fits) {
    lane.depth = std::uint32_t(tracks.size());
    for (const auto& items : tracks) append_track(items);
    return;
  }
  std::vector<std::uint32_t> all(end - begin);
  for (std::uint32_t i = begin; i < end; ++i) all[i - begin] = i;
  append_track(all);
  make_density(lane);
}

void TimelineSummary::append_track(std::span<const std::uint32_t> items) {
  Track track{std::uint32_t(item_.size()), 0};
  for (const std::uint32_t i : items) {
    item_.push_back(i);
    start_s_.push_back(schedule_->start_s[i]);
    end_s_.push_back(schedule_->end_s[i]);
  }
  track.end = std::uint32_t(item_.size());
  tracks_.push_back(track);
}

void TimelineSummary::make_density(Lane& lane) {
  const Track& track = tracks_.back();
  std::vector<double> ends(end_s_.begin() + track.begin, end_s_.begin() + track.end);
  Density density;
  density.latest_end_s.reserve(ends.size());
  double latest = 0;
  for (const double end : ends) density.latest_end_s.push_back(latest = std::max(latest, end));
  std::sort(ends.begin(), ends.end());
  std::uint32_t running = 0, depth = 0;
  double now = 0, integral = 0;
  std::size_t begun = track.begin, ended = 0;
  while (ended < ends.size()) {
    const double next = begun < track.end ? std::min(start_s_[begun], ends[ended]) : ends[ended];
    integral += double(running) * (next - now);
    now = next;
    while (begun < track.end && start_s_[begun] <= now) ++begun, ++running;
    while (ended < ends.size() && ends[ended] <= now) ++ended, --running;
    depth = std::max(depth, running);
    density.time_s.push_back(now);
    density.integral.push_back(integral);
    density.running.push_back(running);
  }
  lane.depth = std::max(depth, 1u);
  lane.density = std::uint32_t(densities_.size());
  densities_.push_back(std::move(density));
}

double TimelineSummary::Density::at(double instant) const {
  const auto after = std::upper_bound(time_s.begin(), time_s.end(), instant) - time_s.begin();
  if (after == 0) return 0;
  const auto i = std::size_t(after - 1);
  return integral[i] + double(running[i]) * (instant - time_s[i]);
}

double TimelineSummary::mean_running(const Lane& lane, double from, double to) const {
  const Density& density = densities_[lane.density];
  return to > from ? (density.at(to) - density.at(from)) / (to - from) : 0;
}

void TimelineSummary::mean_running(const Lane& lane, double from, double step, std::span<float> columns) const {
  const Density& density = densities_[lane.density];
  const auto& time = density.time_s;
  auto after = std::size_t(std::upper_bound(time.begin(), time.end(), from) - time.begin());
  double before = density.at(from);
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const double to = from + double(x + 1) * step;
    // Doubling strides, then halves: a column of many breakpoints costs a few steps, one of none a single one.
    std::size_t stride = 1;
    while (after + stride < time.size() && time[after + stride - 1] <= to) after += stride, stride *= 2;
    after = std::size_t(std::upper_bound(time.begin() + std::ptrdiff_t(after),
                                         time.begin() + std::ptrdiff_t(std::min(after + stride, time.size())), to) -
                        time.begin());
    const double now =
        after == 0 ? 0 : density.integral[after - 1] + double(density.running[after - 1]) * (to - time[after - 1]);
    columns[x] = float(std::max(0.0, now - before) / step);
    before = now;
  }
}

std::uint32_t TimelineSummary::first_ending_after(const Track& track, double instant) const {
  return std::uint32_t(std::upper_bound(end_s_.begin() + track.begin, end_s_.begin() + track.end, instant) -
                       end_s_.begin());
}

std::vector<std::uint32_t> TimelineSummary::running_at(const Lane& lane, double instant) const {
  std::vector<std::uint32_t> places;
  for (std::uint32_t t = lane.first_track; t < lane.first_track + lane.tracks; ++t) {
    const Track& track = tracks_[t];
    if (lane.density == kNone) {
      const std::uint32_t place = first_ending_after(track, instant);
      if (place < track.end && start_s_[place] <= instant) places.push_back(place);
      continue;
    }
    const auto& latest = densities_[lane.density].latest_end_s;
    std::uint32_t place = std::uint32_t(
        std::upper_bound(start_s_.begin() + track.begin, start_s_.begin() + track.end, instant) - start_s_.begin());
    while (place > track.begin && latest[place - 1 - track.begin] > instant)
      if (end_s_[--place] > instant) places.push_back(place);
    std::reverse(places.begin(), places.end());
  }
  return places;
}

void TimelineSummary::index_transfers() {
  const Schedule& s = *schedule_;
  const std::size_t tasks = s.graph ? s.graph->task_count() : 0;
  sent_begin_.assign(tasks + 1, 0);
  const auto counts = [&](std::uint32_t i) {
    return s.task[i] < tasks && (s.is_transfer(i) || s.item_of[s.task[i]] != i);
  };
  for (std::uint32_t i = 0; i < s.item_count(); ++i)
    if (counts(i)) ++sent_begin_[s.task[i] + 1];
  for (std::size_t t = 0; t < tasks; ++t) sent_begin_[t + 1] += sent_begin_[t];
  sent_.resize(sent_begin_[tasks]);
  std::vector<std::uint32_t> at(sent_begin_.begin(), sent_begin_.end() - 1);
  for (std::uint32_t i = 0; i < s.item_count(); ++i)
    if (counts(i)) sent_[at[s.task[i]]++] = i;
}

std::uint32_t TimelineSummary::lane_of(std::uint32_t item) const {
  const auto& lanes = schedule_->lanes;
  const auto after = std::upper_bound(lanes.begin(), lanes.end(), item,
                                      [](std::uint32_t i, const Schedule::Lane& lane) { return i < lane.begin; });
  // Empty lanes share their begin with the next one.
  auto lane = std::uint32_t(after - lanes.begin()) - 1;
  while (lane > 0 && item >= lanes[lane].end) --lane;
  return lane;
}

std::vector<std::uint32_t> TimelineSummary::items_of(TaskIndex task) const {
  std::vector<std::uint32_t> items;
  if (task + std::size_t(1) >= sent_begin_.size()) return items;
  if (const std::uint32_t own = schedule_->item_of[task]; own != kNone) items.push_back(own);
  items.insert(items.end(), sent_.begin() + sent_begin_[task], sent_.begin() + sent_begin_[task + 1]);
  return items;
}

std::vector<std::uint32_t> TimelineSummary::places_of(std::span<const TaskIndex> tasks) const {
  std::vector<std::uint32_t> places;
  for (const TaskIndex task : tasks)
    for (const std::uint32_t item : items_of(task)) places.push_back(place_[item]);
  std::sort(places.begin(), places.end());
  return places;
}

void TimelineSummary::make_overview() {
  overview_compute_.assign(kOverviewBins, 0);
  overview_moving_.assign(kOverviewBins, 0);
  const double makespan = schedule_->makespan_s;
  if (!(makespan > 0)) return;
  std::vector<double> compute(kOverviewBins, 0), moving(kOverviewBins, 0);
  const double bin = makespan / double(kOverviewBins);
  double lanes[2] = {0, 0};
  for (const Lane& lane : lanes_) {
    auto& bins = lane.kind == LaneKind::compute ? compute : moving;
    lanes[lane.kind == LaneKind::compute ? 0 : 1] += 1;
    double reached = 0;
    const Schedule::Lane& items = schedule_->lanes[std::size_t(&lane - lanes_.data())];
    for (std::uint32_t i = items.begin; i < items.end; ++i) {
      // What overlaps counts once: a lane is busy or it is not.
      double from = std::max(schedule_->start_s[i], reached);
      const double to = schedule_->end_s[i];
      reached = std::max(reached, to);
      if (to <= from) continue;
      auto b = std::min(std::size_t(from / bin), kOverviewBins - 1);
      for (; from < to; ++b) {
        const double edge = b + 1 < kOverviewBins ? std::min(to, double(b + 1) * bin) : to;
        if (b >= kOverviewBins) break;
        bins[b] += std::max(0.0, edge - from);
        from = std::max(from, edge);
      }
    }
  }
  for (std::size_t b = 0; b < kOverviewBins; ++b) {
    if (lanes[0] > 0) overview_compute_[b] = float(std::min(1.0, compute[b] / (bin * lanes[0])));
    if (lanes[1] > 0) overview_moving_[b] = float(std::min(1.0, moving[b] / (bin * lanes[1])));
  }
}

}  // namespace turnpoint::views
