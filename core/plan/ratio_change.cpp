// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ratio_change.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/plan/loop_lengths.h"
#include "core/plan/ratio_evaluator.h"

namespace turnpoint {

namespace {

double odds(double part) { return part / (1 - part); }

class Change {
 public:
  Change(const RatioPlan& plan, std::uint32_t cut, double ratio) : from_(plan), cut_(cut), ratio_(ratio) {
    made_.order = plan.order;
    made_.parts = plan.parts;
    for (const RatioPlan::Layer& layer : plan.layers) made_.layers.push_back({layer.op, {}});
  }

  RatioPlan run(const Model& model) {
    const LoopLengths lengths = loop_lengths(model);
    part(0, lengths, lengths);
    return std::move(made_);
  }

 private:
  /// Cuts that equal parts shared become cuts of their own: the parts may not be equal any more.
  std::uint32_t part(std::uint32_t old_index, const LoopLengths& before, const LoopLengths& now) {
    const RatioPlan::Cut& old = from_.cuts[old_index];
    const auto index = static_cast<std::uint32_t>(made_.cuts.size());
    made_.cuts.emplace_back();
    for (std::size_t l = 0; l < from_.layers.size(); ++l)
      made_.layers[l].type.push_back(from_.layers[l].type[old_index]);
    RatioPlan::Cut cut = old;
    if (old_index == cut_) cut.ratio = ratio_;
    std::array<LoopLengths, 2> halves_before{before, before}, halves_now{now, now};
    for (std::size_t o = 0; o < cut.share.size(); ++o) {
      const RatioPlan::Share was = old.share[o];
      if (was.loop < 0) continue;
      const auto loop = static_cast<std::size_t>(was.loop);
      halves_before[0][o][loop] = was.first;
      halves_before[1][o][loop] -= was.first;
      RatioPlan::Share& is = cut.share[o] =
          moved(was, before[o][loop], now[o][loop], old_index == cut_ ? old.ratio : ratio_);
      if (is.loop < 0) continue;
      halves_now[0][o][loop] = is.first;
      halves_now[1][o][loop] -= is.first;
    }
    for (std::size_t h = 0; h < 2; ++h)
      if (old.next[h] != RatioPlan::kNoCut) cut.next[h] = part(old.next[h], halves_before[h], halves_now[h]);
    made_.cuts[index] = std::move(cut);
    return index;
  }

  /// `ratio_before` is that of the changed cut; the new ratio where nothing is to move.
  RatioPlan::Share moved(RatioPlan::Share share, std::int64_t units_before, std::int64_t units,
                         double ratio_before) const {
    if (units < 2) return {};
    const double part = static_cast<double>(share.first) / static_cast<double>(units_before);
    const double by = odds(part) * odds(ratio_) / odds(ratio_before);
    share.first = std::clamp<std::int64_t>(std::llround(by / (1 + by) * static_cast<double>(units)), 1, units - 1);
    return share;
  }

  const RatioPlan& from_;
  std::uint32_t cut_;
  double ratio_;
  RatioPlan made_;
};

}  // namespace

Expected<RatioPlan> with_ratio(const Scenario& scenario, const RatioPlan& plan, std::uint32_t cut, double ratio) {
  if (cut >= plan.cuts.size())
    return usage_error(fmt::format("the plan has {} cuts, none of number {}", plan.cuts.size(), cut));
  if (!(ratio > 0 && ratio < 1)) return usage_error(fmt::format("a ratio of {} is not between 0 and 1", ratio));
  return evaluate_ratio_plan(scenario, Change(plan, cut, ratio).run(*scenario.model));
}

}  // namespace turnpoint
