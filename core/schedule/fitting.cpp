// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/fitting.h"

#include <algorithm>
#include <vector>

#include "core/schedule/simulated_points.h"

namespace turnpoint {
namespace {

constexpr std::size_t kSpread = 32;  // plans along the curve, where the fastest by its sum does not fit
constexpr int kMostBetween = 20;     // halvings between one that fits and one that does not
constexpr int kMostCandidates = 16;  // turning points that turn out not to fit, before only simulated plans count
constexpr double kSameTime = 1e-3;   // plans so near in time look the same
constexpr std::size_t kAtOnce = 16;  // plans of one step towards any that fits, at least: enough for all threads

class Judge {
 public:
  Judge(const ResultPtr& result, const PlanSimulator& simulate, std::size_t until_any_fits)
      : judged_(std::make_shared<Result>(*result)),
        simulate_(simulate),
        limit_(result->scenario->memory_limit()),
        until_any_fits_(until_any_fits) {
    const auto& points = judged_->points;
    room_.resize(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const bool ratio = result->plans->kind(i) == PlanKind::ratio;
      by_sum_.push_back(ratio ? points[i].fits : points[i].memory_bytes <= limit_);
      // The peak of the fullest device does not say whether each device has room: it is simulated once more.
      if (ratio) set(i, ResultPoint{});
    }
  }

  void take_known(const Result& before) {
    if (before.plans != judged_->plans || before.points.size() != judged_->points.size()) return;
    for (std::size_t i = 0; i < before.points.size(); ++i)
      if (before.points[i].simulated_memory_bytes && before.plans->kind(i) != PlanKind::ratio) set(i, before.points[i]);
  }

  Expected<ResultPtr> judge() {
    const Result& result = *judged_;
    std::vector<std::size_t> named{0, result.points.size() - 1};
    for (const auto& index : {result.turning_point, result.near_best, result.fastest_that_fits()})
      if (index) named.push_back(*index);
    if (auto done = look_at(named); !done) return done.error();
    if (auto done = find_fastest(); !done) return done.error();
    if (auto done = find_any(); !done) return done.error();
    presume();
    const auto turning = [](const Result& r) { return find_turning_point(r.points, r.slowest_considered_s); };
    const auto near_best = [](const Result& r) { return find_near_best(r.points, r.slowest_considered_s); };
    if (auto done = settle(turning, judged_->turning_point); !done) return done.error();
    if (auto done = settle(near_best, judged_->near_best); !done) return done.error();
    judged_->fits_by_peak = true;
    if (judged_->gap && !judged_->exact && !judged_->lower_bound.empty()) judged_->gap = considered_gap(*judged_);
    return ResultPtr(std::move(judged_));
  }

 private:
  bool known(std::size_t i) const { return judged_->points[i].simulated_memory_bytes.has_value(); }
  /// Only of a plan that was simulated.
  bool fits(std::size_t i) const { return room_[i].value_or(*judged_->points[i].simulated_memory_bytes <= limit_); }

  void set(std::size_t i, const ResultPoint& from) {
    judged_->points[i].simulated_memory_bytes = from.simulated_memory_bytes;
    judged_->points[i].simulated_time_s = from.simulated_time_s;
  }

  Expected<void> look_at(std::vector<std::size_t> indices) {
    std::erase_if(indices, [&](std::size_t i) { return known(i); });
    std::sort(indices.begin(), indices.end());
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    if (indices.empty()) return {};
    const auto costs = simulate_(indices);
    if (!costs) return costs.error();
    for (std::size_t k = 0; k < indices.size(); ++k) {
      judged_->points[indices[k]].simulated_memory_bytes = (*costs)[k].memory_bytes;
      judged_->points[indices[k]].simulated_time_s = (*costs)[k].time_s;
      room_[indices[k]] = (*costs)[k].all_have_room;
    }
    return {};
  }

  /// Until the fastest plan that is known to fit has a slower neighbour in time that does not, or nothing fits.
  Expected<void> find_fastest() {
    const std::size_t last = judged_->points.size() - 1;
    // The least of the sum above which no plan can be the fastest one.
    const auto by_sum = judged_->fastest_that_fits();
    if (fits(last) || (by_sum && fits(*by_sum) && *by_sum == last)) return {};
    if (!(by_sum && fits(*by_sum))) {
      std::vector<std::size_t> spread = spread_points(*judged_, kSpread);
      // A sum above the limit may have a smaller peak, but seldom: a plan that neighbours the line is enough.
      std::erase_if(spread, [&](std::size_t i) { return by_sum && i > *by_sum; });
      if (auto done = look_at(spread); !done) return done.error();
    }
    return halve_to_the_edge();
  }

  Expected<void> halve_to_the_edge() {
    const auto& points = judged_->points;
    for (int step = 0; step < kMostBetween; ++step) {
      std::size_t best = points.size();
      for (std::size_t i = points.size(); i-- > 0 && best == points.size();)
        if (known(i) && fits(i)) best = i;
      if (best == points.size()) return {};
      std::size_t above = best + 1;
      while (above < points.size() && !known(above)) ++above;
      if (above >= points.size() || above == best + 1) return {};
      if (points[best].time_s - points[above].time_s <= kSameTime * points[best].time_s) return {};
      if (auto done = look_at({best + (above - best) / 2}); !done) return done.error();
    }
    return {};
  }

  bool any_fits() const {
    for (std::size_t i = 0; i < judged_->points.size(); ++i)
      if (known(i) && fits(i)) return true;
    return false;
  }

  /// Where none of the plans spread along the curve fits, one between them may: what a step makes again, gathers or
  /// sends differs from plan to plan, so peaks fall and jump along the curve. Half of the plans of a step lie in the
  /// middle of the widest stretches that nobody looked into, half of them beside the smallest peaks.
  Expected<void> find_any() {
    if (any_fits()) return {};
    std::size_t looked_at = 0;
    while (looked_at < until_any_fits_) {
      std::vector<std::size_t> middles = unknown_middles(until_any_fits_ - looked_at);
      if (middles.empty()) return {};
      looked_at += middles.size();
      if (auto done = look_at(std::move(middles)); !done) return done.error();
      if (any_fits()) return halve_to_the_edge();
    }
    return {};
  }

  /// The middles of stretches between neighbouring plans that were simulated: of an eighth of them, so that
  /// a long curve takes few steps and yet what one step finds leads the next, and of no more than `most`.
  std::vector<std::size_t> unknown_middles(std::size_t most) const {
    struct Stretch {
      std::size_t begin, end;
      std::int64_t least_peak;
    };
    std::vector<Stretch> stretches;
    std::size_t before = judged_->points.size();
    for (std::size_t i = 0; i < judged_->points.size(); ++i) {
      if (!known(i)) continue;
      if (before < i && i - before > 1) stretches.push_back({before, i, std::min(peak(before), peak(i))});
      before = i;
    }
    most = std::min(most, std::max(kAtOnce, stretches.size() / 8));
    const auto by_peak = [](const Stretch& a, const Stretch& b) {
      return a.least_peak != b.least_peak ? a.least_peak < b.least_peak : a.begin < b.begin;
    };
    const auto by_width = [](const Stretch& a, const Stretch& b) {
      return a.end - a.begin != b.end - b.begin ? a.end - a.begin > b.end - b.begin : a.begin < b.begin;
    };
    std::vector<std::size_t> middles;
    const auto take = [&](std::size_t upto) {
      for (std::size_t k = 0; k < stretches.size() && middles.size() < upto; ++k)
        middles.push_back(stretches[k].begin + (stretches[k].end - stretches[k].begin) / 2);
    };
    std::sort(stretches.begin(), stretches.end(), by_width);
    take((most + 1) / 2);
    stretches.erase(stretches.begin(), stretches.begin() + std::ptrdiff_t(middles.size()));
    std::sort(stretches.begin(), stretches.end(), by_peak);
    take(most);
    return middles;
  }

  std::int64_t peak(std::size_t i) const { return *judged_->points[i].simulated_memory_bytes; }

  /// What was simulated by its peak; what was not, if both its neighbours that were do fit.
  void presume() {
    auto& points = judged_->points;
    bool before = true;  // the nearest simulated one below; none: nothing speaks against it
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (known(i)) before = fits(i);
      points[i].fits = known(i) ? before : before && by_sum_[i];
    }
    bool behind = true;
    for (std::size_t i = points.size(); i-- > 0;) {
      if (known(i)) behind = fits(i);
      points[i].fits = points[i].fits && behind;
    }
  }

  /// A point that is named has a peak of its own, and where any plan fits it is one that does.
  template <class Find>
  Expected<void> settle(const Find& find, std::optional<std::size_t>& named) {
    for (int tried = 0; tried < kMostCandidates; ++tried) {
      named = find(*judged_);
      if (!named || known(*named)) return {};
      if (auto done = look_at({*named}); !done) return done.error();
      presume();
    }
    std::vector<bool> presumed;
    for (std::size_t i = 0; i < judged_->points.size(); ++i) {
      presumed.push_back(judged_->points[i].fits);
      if (!known(i)) judged_->points[i].fits = false;
    }
    named = find(*judged_);
    for (std::size_t i = 0; i < presumed.size(); ++i) judged_->points[i].fits = presumed[i];
    return {};
  }

  std::shared_ptr<Result> judged_;
  const PlanSimulator& simulate_;
  std::int64_t limit_;
  std::size_t until_any_fits_;
  std::vector<bool> by_sum_;
  std::vector<std::optional<bool>> room_;  ///< of plans whose devices have memory of their own
};

}  // namespace

bool can_judge_fits(const Result& result) {
  return result.clock == Clock::additive && result.plans && !result.points.empty() && result.scenario->model &&
         result.scenario->settings.accounting == Accounting::full;
}

Expected<ResultPtr> judge_fits(const ResultPtr& result, const PlanSimulator& simulate, const Result* before,
                               std::size_t until_any_fits) {
  Judge judge(result, simulate, until_any_fits);
  if (before) judge.take_known(*before);
  return judge.judge();
}

Expected<ResultPtr> judge_fits(const ResultPtr& result, const RunContext& context, const Result* before,
                               std::size_t until_any_fits) {
  return judge_fits(
      result, [&](std::span<const std::size_t> indices) { return simulate_points(*result, indices, context); }, before,
      until_any_fits);
}

std::size_t simulated_plans(const Result& result) {
  return static_cast<std::size_t>(std::count_if(result.points.begin(), result.points.end(), [](const ResultPoint& p) {
    return p.simulated_memory_bytes.has_value();
  }));
}

std::optional<std::size_t> least_peak(const Result& result) {
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const auto& peak = result.points[i].simulated_memory_bytes;
    if (peak && (!least || *peak < *result.points[*least].simulated_memory_bytes)) least = i;
  }
  return least;
}

}  // namespace turnpoint
