// SPDX-License-Identifier: Apache-2.0
#include "views/memory/memory_summary.h"

#include <algorithm>

namespace turnpoint::views {

std::shared_ptr<const MemorySummary> MemorySummary::make(SchedulePtr schedule) {
  if (!schedule) return nullptr;
  auto summary = std::make_shared<MemorySummary>();
  summary->schedule_ = std::move(schedule);
  const Schedule& s = *summary->schedule_;
  summary->curves_.resize(s.devices.size());
  for (std::uint32_t d = 0; d < s.devices.size(); ++d) {
    summary->make_curve(d);
    if (summary->fullest_device_ == kNone || s.devices[d].peak_bytes > summary->largest_peak_) {
      summary->largest_peak_ = s.devices[d].peak_bytes;
      summary->fullest_device_ = d;
    }
  }
  summary->find_lifetimes();
  return summary;
}

const std::vector<MemorySample>& MemorySummary::samples(std::uint32_t device) const {
  static const std::vector<MemorySample> none;
  return device < schedule_->memory.size() ? schedule_->memory[device] : none;
}

bool MemorySummary::recorded() const {
  for (std::uint32_t d = 0; d < devices(); ++d)
    if (recorded(d)) return true;
  return false;
}

void MemorySummary::make_curve(std::uint32_t device) {
  Curve& curve = curves_[device];
  for (const MemorySample& sample : samples(device)) curve.total.push_back(schedule_->total_at(device, sample));
  std::size_t below = curve.total.size();
  while (below > kFan) {
    std::vector<std::uint32_t> level((below + kFan - 1) / kFan);
    for (std::size_t b = 0; b < level.size(); ++b) {
      std::uint32_t best = kNone;
      for (std::size_t i = b * kFan; i < std::min(below, (b + 1) * kFan); ++i) {
        const std::uint32_t sample = curve.levels.empty() ? std::uint32_t(i) : curve.levels.back()[i];
        if (best == kNone || curve.total[sample] > curve.total[best]) best = sample;
      }
      level[b] = best;
    }
    below = level.size();
    curve.levels.push_back(std::move(level));
  }
}

std::size_t MemorySummary::at(std::uint32_t device, double instant) const {
  const auto& all = samples(device);
  const auto after = std::upper_bound(all.begin(), all.end(), instant,
                                      [](double t, const MemorySample& sample) { return t < sample.time_s; });
  return after == all.begin() ? 0 : std::size_t(after - all.begin()) - 1;
}

std::size_t MemorySummary::fullest(std::uint32_t device, double from, double to) const {
  const auto& all = samples(device);
  const std::size_t first = at(device, from);
  const auto behind = std::lower_bound(all.begin(), all.end(), to,
                                       [](const MemorySample& sample, double t) { return sample.time_s < t; });
  return fullest_of(curves_[device], first, std::max(first + 1, std::size_t(behind - all.begin())));
}

/// Single entries up to whole blocks, then the same a level higher.
std::uint32_t MemorySummary::fullest_of(const Curve& curve, std::size_t first, std::size_t last) const {
  std::uint32_t best = kNone;
  const auto consider = [&](std::uint32_t sample) {
    if (best == kNone || curve.total[sample] > curve.total[best] ||
        (curve.total[sample] == curve.total[best] && sample < best))
      best = sample;
  };
  const auto entry = [&](std::size_t level, std::size_t i) {
    return level == 0 ? std::uint32_t(i) : curve.levels[level - 1][i];
  };
  for (std::size_t level = 0; first < last; ++level) {
    const bool top = level >= curve.levels.size();
    while (first < last && (top || first % kFan != 0 || last - first < kFan)) consider(entry(level, first++));
    while (first < last && last % kFan != 0) consider(entry(level, --last));
    first /= kFan, last /= kFan;
  }
  return best;
}

std::size_t MemorySummary::devices_over() const {
  std::size_t count = 0;
  for (std::uint32_t d = 0; d < devices(); ++d) count += over(d);
  return count;
}

std::optional<double> MemorySummary::first_over(std::uint32_t device) const {
  const auto& total = curves_[device].total;
  const std::int64_t limit = schedule_->devices[device].memory_limit;
  const auto at = std::find_if(total.begin(), total.end(), [&](std::int64_t bytes) { return bytes > limit; });
  if (at == total.end()) return std::nullopt;
  return samples(device)[std::size_t(at - total.begin())].time_s;
}

/// A tensor stays until its last consumer on the device and its last transfer away have ended, a copy until its last
/// consumer has; without any, to the end (resources/manual/simulator.md, rule 4).
void MemorySummary::find_lifetimes() {
  const Schedule& s = *schedule_;
  if (!s.graph || s.item_of.size() != s.graph->task_count() || s.device_of.size() != s.graph->task_count()) return;
  own_end_s_.assign(s.graph->task_count(), -1);
  copies_.resize(s.devices.size());
  const auto last_use = [&](TaskIndex task, std::uint32_t device) {
    double last = -1;
    for (const TaskIndex user : s.graph->successors(task))
      if (s.device_of[user] == device && s.item_of[user] != kNone) last = std::max(last, s.end_s[s.item_of[user]]);
    return last;
  };
  for (TaskIndex t = 0; t < s.graph->task_count(); ++t)
    if (s.item_of[t] != kNone) own_end_s_[t] = last_use(t, s.device_of[t]);
  for (const Schedule::Lane& lane : s.lanes) {
    if (lane.kind != LaneKind::send) continue;
    for (std::uint32_t i = lane.begin; i < lane.end; ++i) {
      const TaskIndex task = s.task[i];
      own_end_s_[task] = std::max(own_end_s_[task], s.end_s[i]);
      if (s.peer[i] >= copies_.size()) continue;
      const double last = last_use(task, s.peer[i]);
      copies_[s.peer[i]].push_back({s.start_s[i], last < 0 ? s.makespan_s : last, task, lane.device, s.bytes[i]});
    }
  }
  for (double& end : own_end_s_)
    if (end < 0) end = s.makespan_s;
  for (auto& copies : copies_)
    std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) {
      return a.start_s != b.start_s ? a.start_s < b.start_s : a.task < b.task;
    });
}

std::optional<MemorySummary::Live> MemorySummary::live_at(std::uint32_t device, double instant,
                                                          std::size_t most) const {
  const Schedule& s = *schedule_;
  if (device >= copies_.size() || !recorded(device)) return std::nullopt;
  Live live;
  std::vector<LiveTensor> all;
  const auto add = [&](const LiveTensor& tensor) {
    live.bytes += tensor.bytes;
    if (tensor.bytes > 0) all.push_back(tensor);
  };
  for (const Schedule::Lane& lane : s.lanes) {
    if (lane.device != device || lane.kind != LaneKind::compute) continue;
    for (std::uint32_t i = lane.begin; i < lane.end && s.start_s[i] <= instant; ++i)
      if (own_end_s_[s.task[i]] > instant) add({s.task[i], s.graph->output_bytes[s.task[i]], kNone});
  }
  for (const Copy& copy : copies_[device]) {
    if (copy.start_s > instant) break;
    if (copy.end_s > instant) add({copy.task, copy.bytes, copy.from});
  }
  const MemorySample& sample = samples(device)[at(device, instant)];
  if (live.bytes != sample.activation_bytes + sample.copy_bytes) return std::nullopt;
  live.count = all.size();
  most = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + std::ptrdiff_t(most), all.end(),
                    [](const LiveTensor& a, const LiveTensor& b) {
                      return a.bytes != b.bytes ? a.bytes > b.bytes : a.task < b.task;
                    });
  all.resize(most);
  live.largest = std::move(all);
  return live;
}

}  // namespace turnpoint::views
