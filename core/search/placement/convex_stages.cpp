// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/convex_stages.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_map>

namespace turnpoint::placement {
namespace {

constexpr std::size_t kMostSets = 30'000;
constexpr std::size_t kMostWords = 4'000'000;  // of all sets together
constexpr std::size_t kMostPairs = 6'000'000;  // of sets, one inside the other
constexpr double kUnreached = std::numeric_limits<double>::infinity();

/// Who must come before whom, unit by unit.
struct Precedence {
  std::vector<std::vector<std::uint32_t>> after;  // by unit: direct successors
  std::vector<std::uint32_t> before;              // by unit: how many direct predecessors
};

bool is_forward(const TaskGraph& g, TaskIndex t) {
  return g.kind[t] == TaskKind::forward || g.kind[t] == TaskKind::other;
}

/// Nothing where forward tasks of units wait for each other in a circle.
std::optional<Precedence> precedence_of(const TaskGraph& g, const Units& u) {
  Precedence p;
  p.after.resize(u.count());
  p.before.assign(u.count(), 0);
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    if (!is_forward(g, t)) continue;
    for (const TaskIndex to : g.successors(t))
      if (is_forward(g, to) && u.of_task[t] != u.of_task[to]) p.after[u.of_task[t]].push_back(u.of_task[to]);
  }
  for (auto& row : p.after) {
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    for (const std::uint32_t to : row) ++p.before[to];
  }
  auto waiting = p.before;
  std::vector<std::uint32_t> ready;
  for (std::uint32_t unit = 0; unit < waiting.size(); ++unit)
    if (waiting[unit] == 0) ready.push_back(unit);
  for (std::size_t i = 0; i < ready.size(); ++i)
    for (const std::uint32_t to : p.after[ready[i]])
      if (--waiting[to] == 0) ready.push_back(to);
  if (ready.size() != u.count()) return std::nullopt;
  return p;
}

/// All downward-closed sets, smaller ones first, and for each the sets with one unit more.
class ClosedSets {
 public:
  struct Step {
    std::uint32_t unit, to;
  };
  /// False: too many.
  bool enumerate(const Precedence& p, const RunContext& context) {
    const std::size_t units = p.before.size();
    words_ = (units + 63) / 64;
    add(std::vector<std::uint64_t>(words_, 0));
    std::vector<std::uint32_t> missing;
    for (std::uint32_t set = 0; set < count(); ++set) {
      if (context.cancelled() || count() > kMostSets || bits_.size() > kMostWords) return false;
      step_begin_.push_back(std::uint32_t(steps_.size()));
      const std::vector<std::uint64_t> members(bits_.begin() + std::ptrdiff_t(set * words_),
                                               bits_.begin() + std::ptrdiff_t((set + 1) * words_));
      missing = p.before;
      for (std::uint32_t unit = 0; unit < units; ++unit)
        if (has(members, unit))
          for (const std::uint32_t to : p.after[unit]) --missing[to];
      for (std::uint32_t unit = 0; unit < units; ++unit) {
        if (missing[unit] != 0 || has(members, unit)) continue;
        auto next = members;
        next[unit / 64] |= std::uint64_t(1) << (unit % 64);
        steps_.push_back({unit, find_or_add(next)});
      }
    }
    step_begin_.push_back(std::uint32_t(steps_.size()));
    return true;
  }
  std::uint32_t count() const { return std::uint32_t(bits_.size() / words_); }
  std::span<const Step> steps(std::uint32_t set) const {
    return {steps_.data() + step_begin_[set], steps_.data() + step_begin_[set + 1]};
  }
  bool contains(std::uint32_t set, std::uint32_t unit) const {
    return bits_[set * words_ + unit / 64] >> (unit % 64) & 1;
  }

 private:
  static bool has(const std::vector<std::uint64_t>& members, std::uint32_t unit) {
    return members[unit / 64] >> (unit % 64) & 1;
  }
  void add(const std::vector<std::uint64_t>& members) {
    by_hash_.emplace(hash(members), count());
    bits_.insert(bits_.end(), members.begin(), members.end());
  }
  std::uint32_t find_or_add(const std::vector<std::uint64_t>& members) {
    const auto [first, last] = by_hash_.equal_range(hash(members));
    for (auto it = first; it != last; ++it)
      if (std::equal(members.begin(), members.end(), bits_.begin() + std::ptrdiff_t(it->second * words_)))
        return it->second;
    add(members);
    return count() - 1;
  }
  static std::uint64_t hash(const std::vector<std::uint64_t>& members) {
    std::uint64_t value = 0x9e3779b97f4a7c15;
    for (const std::uint64_t word : members) {
      value = (value ^ word) * 0xbf58476d1ce4e5b9;
      value ^= value >> 31;
    }
    return value;
  }

  std::size_t words_ = 1;
  std::vector<std::uint64_t> bits_;  // set by set
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> step_begin_;
};

/// The programme: best[s][set], the smallest maximum load of `set` cut into at most s stages.
class Cutter {
 public:
  Cutter(const Units& units, const ClosedSets& sets, std::uint32_t stages, double speed, std::int64_t limit,
         double known)
      : u_(units), sets_(sets), stages_(stages), speed_(speed), limit_(limit), known_(known) {
    inside_.assign(u_.tensors.size(), 0);
    seen_.assign(sets_.count(), kNone);
    best_.assign(std::size_t(stages_ + 1) * sets_.count(), kUnreached);
    from_.assign(best_.size(), kNone);
    left_s_.assign(sets_.count(), std::accumulate(u_.time_s.begin(), u_.time_s.end(), 0.0) / speed_);
    for (std::uint32_t set = 0; set < sets_.count(); ++set)
      for (const auto& step : sets_.steps(set)) left_s_[step.to] = left_s_[set] - u_.time_s[step.unit] / speed_;
    for (std::uint32_t s = 0; s <= stages_; ++s) at(s, 0) = 0;
  }

  /// False: cancelled or too long.
  bool run(const RunContext& context) {
    for (base_ = 0; base_ + 1 < sets_.count(); ++base_) {
      if (context.cancelled() || pairs_ > kMostPairs) return false;
      if (!worth_going_on(base_)) continue;
      time_s_ = transfer_s_ = 0;
      bytes_ = 0;
      grow(base_);
    }
    return true;
  }

  std::optional<std::vector<std::uint32_t>> device_by_unit() const {
    std::uint32_t set = sets_.count() - 1;
    if (!(best_[std::size_t(stages_) * sets_.count() + set] < known_)) return std::nullopt;
    std::vector<std::uint32_t> device(u_.count(), 0);
    for (std::uint32_t s = stages_; set != 0; --s) {
      const std::uint32_t before = from_[std::size_t(s) * sets_.count() + set];
      for (std::uint32_t unit = 0; unit < device.size(); ++unit)
        if (sets_.contains(set, unit) && !sets_.contains(before, unit)) device[unit] = s - 1;
      set = before;
    }
    return device;
  }

 private:
  double& at(std::uint32_t stage, std::uint32_t set) { return best_[std::size_t(stage) * sets_.count() + set]; }

  /// Whether some number of stages reaches the set below what is known, and may finish there.
  bool worth_going_on(std::uint32_t set) {
    for (std::uint32_t s = 0; s < stages_; ++s)
      if (at(s, set) < known_ && left_s_[set] / (stages_ - s) < known_) return true;
    return false;
  }

  /// Visits every set around the base by adding units; the units added are the stage.
  void grow(std::uint32_t set) {
    for (const auto& step : sets_.steps(set)) {
      if (seen_[step.to] == base_ || pairs_ > kMostPairs) continue;
      seen_[step.to] = base_;
      ++pairs_;
      const double time = time_s_, transfers = transfer_s_;
      const std::int64_t bytes = u_.persistent[step.unit];
      if (time + u_.time_s[step.unit] / speed_ >= known_ || bytes_ + bytes > limit_) continue;
      time_s_ += u_.time_s[step.unit] / speed_;
      bytes_ += bytes;
      charge(step.unit, +1);
      offer(step.to);
      grow(step.to);
      charge(step.unit, -1);
      bytes_ -= bytes;
      // Not by subtraction, which would leave rounding behind.
      time_s_ = time;
      transfer_s_ = transfers;
    }
  }

  /// A tensor costs while some, but not all, of the units that have to do with it are in the stage.
  void charge(std::uint32_t unit, int sign) {
    for (std::uint32_t i = u_.touched_begin[unit]; i < u_.touched_begin[unit + 1]; ++i) {
      const std::uint32_t tensor = u_.touched[i], all = u_.readers(tensor) + 1;
      const bool cut_before = inside_[tensor] != 0 && inside_[tensor] != all;
      inside_[tensor] += sign > 0 ? 1 : -1;
      const bool cut_now = inside_[tensor] != 0 && inside_[tensor] != all;
      if (cut_now != cut_before)
        transfer_s_ += cut_now ? u_.tensors[tensor].transfer_s : -u_.tensors[tensor].transfer_s;
    }
  }

  void offer(std::uint32_t set) {
    const double load = time_s_ + transfer_s_;
    if (load >= known_) return;
    for (std::uint32_t s = 0; s < stages_; ++s) {
      const double value = std::max(load, at(s, base_));
      if (value >= at(s + 1, set)) continue;
      at(s + 1, set) = value;
      from_[std::size_t(s + 1) * sets_.count() + set] = base_;
    }
  }

  const Units& u_;
  const ClosedSets& sets_;
  std::uint32_t stages_;
  double speed_;
  std::int64_t limit_;
  double known_;
  std::vector<double> best_, left_s_;  // left_s_ by set: time of the units outside
  std::vector<std::uint32_t> from_;
  std::vector<std::uint32_t> inside_;  // by tensor: units of the stage that have to do with it
  std::vector<std::uint32_t> seen_;    // by set: last base from which it was reached
  std::uint32_t base_ = 0;
  double time_s_ = 0, transfer_s_ = 0;  // of the stage: computing, transfers
  std::int64_t bytes_ = 0;
  std::size_t pairs_ = 0;
};

}  // namespace

std::optional<std::vector<std::uint32_t>> convex_stages(const TaskGraph& graph, const Units& units,
                                                        const PlacementRequest& request, double known,
                                                        const RunContext& context) {
  std::int64_t limit = request.limit_of(graph, 0);
  for (std::uint32_t d = 1; d < request.devices; ++d) {
    if (graph.speed_of(d) != graph.speed_of(0)) return std::nullopt;
    limit = std::min(limit, request.limit_of(graph, d));
  }
  const auto precedence = precedence_of(graph, units);
  if (!precedence) return std::nullopt;
  ClosedSets sets;
  if (!sets.enumerate(*precedence, context)) return std::nullopt;
  Cutter cutter(units, sets, request.devices, graph.speed_of(0), limit, known);
  if (!cutter.run(context)) return std::nullopt;
  return cutter.device_by_unit();
}

}  // namespace turnpoint::placement
