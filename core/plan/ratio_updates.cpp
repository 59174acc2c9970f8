// SPDX-License-Identifier: Apache-2.0
// Whose update of a ratio plan's weights is shared out, and what a device updates of them then.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/cost/side_kernels.h"
#include "core/cost/summed_elements.h"
#include "core/model/model.h"
#include "core/plan/ratio_charges.h"
#include "core/plan/ratio_places.h"

namespace turnpoint {

// Gradients and new weights fill messages, the sums of a round are one: an operator pays for its part of each.
std::vector<RatioWeights> RatioCharges::weights_at(const RatioPlan::Cut& cut, const LoopLengths& lengths) const {
  constexpr double kSumBytes = 4;  // norms are summed in fp32
  std::vector<RatioWeights> weights(lengths.size());
  std::vector<std::vector<double>> sums(lengths.size());
  std::vector<double> all_sums;
  double gradients = 0, all = 0;
  for (std::size_t o = 0; o < weights.size(); ++o) {
    const OperatorId id(o);
    const Operator& op = model_.operators[id];
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!uses_.owns_parameter[o][k]) continue;
      const auto summed = summed_elements(settings_.optimizer, local_shape(op, op.inputs[k], lengths[o]));
      add_rounds(all_sums, summed);
      const int dim = cut_of_weight(id, k, cut);
      if (dim >= 0) continue;
      const double count = elements(op, op.inputs[k], lengths[o]);
      weights[o].weight += count * real_.weight;
      if (dim == Layout::kPartial) weights[o].gradient += count * real_.gradient;
      add_rounds(sums[o], summed);
    }
    gradients += weights[o].gradient, all += weights[o].weight;
  }
  const double bucket = scenario_.by_library() ? static_cast<double>(settings_.bucket_bytes) : 0;
  const auto hops = [&](double bytes, double together) {
    return bytes > 0 ? bytes / std::max(bytes, std::min(bucket, together)) : 0;
  };
  for (std::size_t o = 0; o < weights.size(); ++o) {
    RatioWeights& of = weights[o];
    of.gradient_hops = hops(of.gradient, gradients), of.weight_hops = hops(of.weight, all);
    for (std::size_t r = 0; r < sums[o].size(); ++r)
      of.sums.push_back({sums[o][r] * kSumBytes, sums[o][r] > 0 ? sums[o][r] / all_sums[r] : 0});
  }
  return weights;
}

void RatioCharges::share_out(OperatorId id, const RatioPlan::Cut& cut, int level, double share,
                             RatioUpdates& updates) const {
  const std::uint64_t bit = std::uint64_t(1) << level;
  for (std::size_t k = 0; k < updates.size(); ++k) {
    if (!uses_.owns_parameter[id.index][k]) continue;
    const int dim = cut_of_weight(id, k, cut);
    if (dim >= 0) continue;
    updates[k].whole |= bit;
    if (dim == Layout::kPartial) updates[k].partial |= bit;
    if (share > 0) updates[k].share *= share;
  }
}

RatioUpdates RatioCharges::updates_on(OperatorId id, std::uint32_t device) const {
  if (shared_out_.empty() || !shared_out_[id.index]) return {};
  RatioUpdates updates(model_.operators[id].inputs.size());
  std::uint32_t part = plan_.whole(), cut = 0, place = place_of_[device];
  for (int level = 0; plan_.parts[part].devices > 1; ++level) {
    const RatioPlan::Cut& here = plan_.cuts[cut];
    const std::uint32_t in_first = plan_.parts[plan_.parts[part].halves[0]].devices;
    const std::size_t half = place < in_first ? 0 : 1;
    const double first = here.update_of(id);
    share_out(id, here, level, first == 0 || half == 0 ? first : 1 - first, updates);
    if (half == 1) place -= in_first;
    part = plan_.parts[part].halves[half], cut = here.next[half];
  }
  return updates;
}

// A share of a run is rounded up to whole elements, as equal shards are padded.
std::int64_t RatioCharges::updated(OperatorId id, const Lengths& lengths, const RatioUpdates& updates) const {
  if (updates.empty()) return owned(id, lengths);
  constexpr double kRoundingError = 1e-12;  // of a product of shares
  const Operator& op = model_.operators[id];
  std::map<RatioUpdate, double> runs;
  for (std::size_t k = 0; k < op.inputs.size(); ++k)
    if (uses_.owns_parameter[id.index][k]) runs[updates[k]] += elements(op, op.inputs[k], lengths);
  std::int64_t count = 0;
  for (const auto& [update, run] : runs)
    count += static_cast<std::int64_t>(std::ceil(update.share * run * (1 - kRoundingError)));
  return count;
}

double RatioCharges::update_s(std::int64_t elements, std::uint32_t device) const {
  const DeviceType& type = device_of(cluster_, device);
  const double bytes = static_cast<double>(elements) * bytes_per_update(settings_, cluster_.library);
  return bytes / (type.memory_bandwidth * type.memory_efficiency * settings_.factors.device_speed) + type.launch_s;
}

Expected<void> RatioCharges::check_updates() const {
  for (std::size_t c = 0; c < plan_.cuts.size(); ++c) {
    const std::vector<double>& updates = plan_.cuts[c].updates;
    if (!updates.empty() && updates.size() != model_.operators.size())
      return bad(fmt::format("cut {} shares out updates of {} operators, and there are {}", c, updates.size(),
                             model_.operators.size()));
    for (std::size_t o = 0; o < updates.size(); ++o)
      if (!(updates[o] >= 0 && updates[o] < 1))
        return bad(fmt::format("cut {} gives the first half {} of the update of '{}', which is not between 0 and 1", c,
                               updates[o], model_.operators[OperatorId(o)].name));
  }
  if (place_of_.empty()) return {};
  const auto places = places_of(plan_, model_, *this);
  if (!places) return places.error();
  for (const RatioPlace& place : *places) {
    if (place.is_device()) continue;
    const RatioPlan::Cut& cut = plan_.cuts[place.cut];
    for (std::size_t o = 0; o < cut.updates.size(); ++o)
      if (cut.updates[o] > 0 && place.held[o] != RatioPlace::Held::alike)
        return bad(fmt::format(
            "cut {} shares out the update of '{}', {}", place.cut, model_.operators[OperatorId(o)].name,
            place.held[o] == RatioPlace::Held::unlike ? "whose weights its halves divide further in unlike ways"
                                                      : "of which its halves hold no weights alike"));
  }
  return {};
}

}  // namespace turnpoint
