// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ratio_places.h"

#include <map>
#include <tuple>

#include "core/model/model.h"

namespace turnpoint {

namespace {

class PlacesWalk {
 public:
  PlacesWalk(const RatioPlan& plan, const Model& model, const RatioCharges& charges)
      : plan_(plan), model_(model), charges_(charges) {}

  Expected<std::vector<RatioPlace>> run() {
    const std::uint32_t cut = plan_.cuts.empty() ? RatioPlan::kNoCut : 0;
    if (auto done = place(plan_.whole(), cut, 0, 0, loop_lengths(model_)); !done) return done.error();
    return std::move(made_);
  }

 private:
  /// By operator and input a number that is the same where a weight is divided in the same way.
  using Ways = std::vector<std::vector<std::uint32_t>>;
  static constexpr std::uint32_t kUndivided = 0;

  Expected<Ways> place(std::uint32_t part, std::uint32_t cut, std::uint32_t first, int level,
                       const LoopLengths& lengths) {
    const auto index = static_cast<std::uint32_t>(made_.size());
    made_.push_back({part, cut, first, level, {}, lengths, {}});
    const RatioPlan::Part& here = plan_.parts[part];
    if (here.devices == 1) {
      made_[index].cut = RatioPlan::kNoCut;
      Ways ways;
      for (const Operator& op : model_.operators) ways.emplace_back(op.inputs.size(), kUndivided);
      return ways;
    }
    const auto found = charges_.cut_of(part, cut);
    if (!found) return found.error();
    const auto halves = charges_.divide(**found, lengths);
    if (!halves) return halves.error();
    const bool one = charges_.one_half_tells(part, **found, *halves, first);
    std::array<Ways, 2> ways;
    for (std::size_t h = 0; h < 2; ++h) {
      made_[index].halves[h] = h == 1 && one ? made_[index].halves[0] : static_cast<std::uint32_t>(made_.size());
      if (h == 1 && one) {
        ways[1] = ways[0];
        break;
      }
      auto inside = place(here.halves[h], (*found)->next[h],
                          h == 0 ? first : first + plan_.parts[here.halves[0]].devices, level + 1, (*halves)[h]);
      if (!inside) return inside;
      ways[h] = std::move(*inside);
    }
    for (std::size_t o = 0; o < lengths.size(); ++o)
      made_[index].held.push_back(join(OperatorId(o), **found, lengths[o], ways[0][o], ways[1][o]));
    return std::move(ways[0]);
  }

  /// Leaves in `ways` how both halves together divide each weight.
  RatioPlace::Held join(OperatorId id, const RatioPlan::Cut& cut, const RatioCharges::Lengths& lengths,
                        std::vector<std::uint32_t>& ways, const std::vector<std::uint32_t>& others) {
    using Held = RatioPlace::Held;
    Held held = Held::nothing_alike;
    const RatioPlan::Share& share = cut.share[id.index];
    for (std::size_t k = 0; k < ways.size(); ++k) {
      if (!charges_.uses().owns_parameter[id.index][k]) continue;
      const bool whole = charges_.cut_of_weight(id, k, cut) < 0;
      if (whole && ways[k] == others[k]) {
        if (held == Held::nothing_alike) held = Held::alike;
        continue;
      }
      if (whole) held = Held::unlike;
      const std::int64_t all = whole ? 0 : lengths[static_cast<std::size_t>(share.loop)];
      const auto next = static_cast<std::uint32_t>(numbers_.size() + 1);
      ways[k] = numbers_
                    .try_emplace(
                        {whole ? std::int8_t(-1) : share.loop, whole ? 0 : share.first, all, ways[k], others[k]}, next)
                    .first->second;
    }
    return held;
  }

  const RatioPlan& plan_;
  const Model& model_;
  const RatioCharges& charges_;
  std::vector<RatioPlace> made_;
  std::map<std::tuple<std::int8_t, std::int64_t, std::int64_t, std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

}  // namespace

Expected<std::vector<RatioPlace>> places_of(const RatioPlan& plan, const Model& model, const RatioCharges& charges) {
  return PlacesWalk(plan, model, charges).run();
}

Expected<RatioPlan> with_possible_updates(const Scenario& scenario, RatioPlan plan) {
  if (!plan.shards_updates()) return plan;
  RatioPlan whole = plan;
  for (RatioPlan::Cut& cut : whole.cuts) cut.updates.clear();
  const RatioCharges charges(scenario, whole);
  const auto places = places_of(whole, *scenario.model, charges);
  if (!places) return places.error();
  for (const RatioPlace& place : *places)
    for (std::size_t o = 0; o < place.held.size() && !plan.cuts[place.cut].updates.empty(); ++o)
      if (place.held[o] != RatioPlace::Held::alike) plan.cuts[place.cut].updates[o] = 0;
  return plan;
}

}  // namespace turnpoint
