// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/ratio_plan_updates.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/cost/operator_cost.h"
#include "core/plan/ratio_evaluator.h"
#include "core/plan/ratio_places.h"
#include "core/search/update_sharding/decision_words.h"

namespace turnpoint::update_sharding {

namespace {

constexpr double kGain = 1e-9;       // of an operator's time: what is no rounding
constexpr int kMostUnlikeAbove = 3;  // cuts with unlike halves, below which ways are not multiplied any more

/// A place with what is the same for all operators' decisions.
struct PricedPlace {
  std::vector<double> ways;  ///< to share out: first half's share
  double by_devices = 0.5;   ///< the one of them in which every device has the same
  RatioLink link;
  std::vector<RatioWeights> weights;  ///< by operator
  std::vector<double> others;         ///< by operator: seconds of what else it exchanges there
};

/// The tree of one plan, whose updates are whole.
class PricedTree {
 public:
  PricedTree(const Scenario& scenario, const RatioPlan& of, const TrainingLoop& around)
      : model(*scenario.model), plan(of), charges(scenario, of), loop(around), cluster_(*scenario.cluster) {}

  Expected<void> make() {
    if (auto checked = charges.check_tree(); !checked) return checked;
    auto found = places_of(plan, model, charges);
    if (!found) return found.error();
    places = std::move(*found);
    for (std::size_t p = 0; p < places.size(); ++p) priced.push_back(price(places[p]));
    std::vector<int> unlike(places.size(), 0);
    for (std::size_t p = 0; p < places.size(); ++p) {
      if (places[p].is_device()) continue;
      if (unlike[p] > kMostUnlikeAbove) priced[p].ways = {priced[p].by_devices};
      for (const std::uint32_t half : places[p].halves) unlike[half] = unlike[p] + (places[p].one_half_tells() ? 0 : 1);
    }
    return {};
  }

  const RatioPlan::Cut& cut(std::uint32_t place) const { return plan.cuts[places[place].cut]; }

  const Model& model;
  const RatioPlan& plan;
  const RatioCharges charges;
  const TrainingLoop& loop;
  std::vector<RatioPlace> places;
  std::vector<PricedPlace> priced;

 private:
  PricedPlace price(const RatioPlace& place) const {
    PricedPlace made;
    if (place.is_device()) return made;
    const std::uint32_t second = place.first + plan.parts[plan.parts[place.part].halves[0]].devices,
                        end = place.first + plan.parts[place.part].devices;
    double bandwidth[2] = {0, 0};
    for (std::uint32_t d = place.first; d < end; ++d) {
      const DeviceType& type = device_of(cluster_, plan.order[d]);
      bandwidth[d < second ? 0 : 1] += type.memory_bandwidth * type.memory_efficiency;
    }
    made.by_devices = double(second - place.first) / double(end - place.first);
    for (const double share : {made.by_devices, bandwidth[0] / (bandwidth[0] + bandwidth[1]), 0.5})
      if (std::none_of(made.ways.begin(), made.ways.end(),
                       [&](double known) { return std::abs(known - share) < 1e-12; }))
        made.ways.push_back(share);
    made.link = charges.link_between(place.first, second, end);
    const RatioPlan::Cut& here = plan.cuts[place.cut];
    made.weights = charges.weights_at(here, place.lengths);
    made.others.assign(place.lengths.size(), 0);
    for (const RatioExchange& exchange : charges.exchanges(here, place.lengths, made.link))
      if (exchange.what != RatioExchange::What::weight_gradient) made.others[exchange.op.index] += exchange.seconds;
    return made;
  }

  const Cluster& cluster_;
};

/// What of an operator's update is counted.
struct CountedParts {
  bool reduce = true, update = true, gather = true;
};

/// The decisions for one operator.
class OneUpdate {
 public:
  using Shares = std::vector<double>;  ///< by place: of the first half; 0: whole

  /// Of an operator with parameters of its own.
  OneUpdate(const PricedTree& tree, OperatorId id) : tree_(tree), id_(id), largest_(largest_of(tree, id)) {
    for (const RatioPlace& place : tree.places) {
      alone_.push_back(0);
      if (!place.is_device()) continue;
      CostBreakdown cost = tree.charges.device_cost(id, tree.plan.order[place.first], place.lengths[id.index]);
      alone_.back() = cost.time_s() - cost[ComputePart::update];
    }
  }

  Shares whole() const { return Shares(tree_.places.size(), 0); }
  /// Every device an equal share, wherever halves hold the weights alike.
  Shares everywhere() const {
    Shares shares = whole();
    for (std::uint32_t p = 0; p < shares.size(); ++p)
      if (may_share(p)) shares[p] = tree_.priced[p].by_devices;
    return shares;
  }
  /// The same where it is not the largest parameter that they hold alike.
  Shares everything_alike() const {
    Shares shares = whole();
    for (std::uint32_t p = 0; p < shares.size(); ++p)
      if (!tree_.places[p].is_device() && tree_.places[p].held[id_.index] == RatioPlace::Held::alike)
        shares[p] = tree_.priced[p].by_devices;
    return shares;
  }
  Shares best() {
    Shares shares = whole();
    read_back(0, start(), shares);
    return shares;
  }
  /// Smaller parameters go by the largest: they are not shared out alone.
  bool may_share(std::uint32_t p) const {
    const RatioPlace& place = tree_.places[p];
    return !place.is_device() && place.held[id_.index] == RatioPlace::Held::alike &&
           tree_.charges.cut_of_weight(id_, largest_, tree_.cut(p)) < 0;
  }
  const Access& access() const { return tree_.model.operators[id_].inputs[largest_]; }  ///< to the largest
  const Tensor& weight() const { return tree_.model.tensors[access().tensor]; }
  bool divided_in_unlike_ways() const {
    return std::any_of(tree_.places.begin(), tree_.places.end(), [&](const RatioPlace& place) {
      return !place.is_device() && place.held[id_.index] == RatioPlace::Held::unlike;
    });
  }

  /// All that decides: operators that are alike in it have one decision.
  std::vector<double> facts() const {
    std::vector<double> all;
    for (std::uint32_t p = 0; p < tree_.places.size(); ++p) {
      const RatioPlace& place = tree_.places[p];
      const Operator& op = tree_.model.operators[id_];
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        if (!tree_.charges.uses().owns_parameter[id_.index][k]) continue;
        all.push_back(place.is_device() ? tree_.charges.elements(op, op.inputs[k], place.lengths[id_.index])
                                        : tree_.charges.cut_of_weight(id_, k, tree_.cut(p)));
      }
      all.push_back(alone_[p]);
      if (place.is_device()) continue;
      const RatioWeights& weights = tree_.priced[p].weights[id_.index];
      all.insert(all.end(), {weights.gradient, weights.gradient_hops, weights.weight, weights.weight_hops,
                             tree_.priced[p].others[id_.index], may_share(p) ? 1.0 : 0.0});
      for (const RatioWeights::Sum& sum : weights.sums) all.insert(all.end(), {sum.bytes, sum.hops});
    }
    return all;
  }

  /// Adds to each place that is a device how many elements of the weights it holds, and how many of these it updates.
  void count(const Shares& shares, std::vector<std::array<std::int64_t, 2>>& elements) const {
    count_at(0, start(), shares, elements);
  }

  /// Seconds of the operator on its slowest device, with its exchanges.
  double seconds(const Shares& shares, const CountedParts& counted = {}) const {
    return at(0, start(), shares, counted);
  }
  /// What its update adds to that: gradients first, then the update itself, then new weights.
  UpdateSeconds added(const Shares& shares) const {
    const double without = seconds(shares, {false, false, false}), reduced = seconds(shares, {true, false, false}),
                 updated = seconds(shares, {true, true, false}), all = seconds(shares);
    return {reduced - without, updated - reduced, all - updated};
  }

 private:
  struct Best {
    double seconds = 0, share = 0;
  };

  static std::size_t largest_of(const PricedTree& tree, OperatorId id) {
    const Operator& op = tree.model.operators[id];
    const auto elements = [&](std::size_t k) { return tree.model.tensors[op.inputs[k].tensor].elements(); };
    std::size_t found = op.inputs.size();
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      if (tree.charges.uses().owns_parameter[id.index][k] &&
          (found == op.inputs.size() || elements(k) > elements(found)))
        found = k;
    return found;
  }

  RatioUpdates start() const { return RatioUpdates(tree_.model.operators[id_].inputs.size()); }
  RatioUpdates into(std::uint32_t p, std::size_t half, double first, RatioUpdates updates) const {
    const double share = first == 0 || half == 0 ? first : 1 - first;
    tree_.charges.share_out(id_, tree_.cut(p), tree_.places[p].level, share, updates);
    return updates;
  }

  void count_at(std::uint32_t p, const RatioUpdates& updates, const Shares& shares,
                std::vector<std::array<std::int64_t, 2>>& elements) const {
    const RatioPlace& here = tree_.places[p];
    if (here.is_device()) {
      elements[p][0] += tree_.charges.owned(id_, here.lengths[id_.index]);
      elements[p][1] += tree_.charges.updated(id_, here.lengths[id_.index], updates);
      return;
    }
    count_at(here.halves[0], into(p, 0, shares[p], updates), shares, elements);
    if (!here.one_half_tells()) count_at(here.halves[1], into(p, 1, shares[p], updates), shares, elements);
  }

  double on_device(std::uint32_t p, const RatioUpdates& updates, const CountedParts& counted) const {
    const auto& lengths = tree_.places[p].lengths[id_.index];
    if (!counted.update) return alone_[p];
    return alone_[p] + tree_.charges.update_s(tree_.charges.updated(id_, lengths, updates),
                                              tree_.plan.order[tree_.places[p].first]);
  }

  double exchanged(std::uint32_t p, double first, const CountedParts& counted) const {
    const PricedPlace& here = tree_.priced[p];
    const RatioWeights& weights = here.weights[id_.index];
    std::vector<RatioExchange> made;
    tree_.charges.exchange_weights(made, id_, weights, first, here.link);
    double seconds = here.others[id_.index];
    using What = RatioExchange::What;
    for (const RatioExchange& exchange : made)
      if (exchange.what == What::new_weights   ? counted.gather
          : exchange.what == What::update_sums ? counted.update
                                               : counted.reduce)
        seconds += exchange.seconds;
    if (first > 0 && counted.gather && tree_.loop.checkpoint_every > 0) seconds += checkpoint_s(p, first);
    return seconds;
  }

  /// What checkpoints gather of the optimizer state, a step.
  double checkpoint_s(std::uint32_t p, double first) const {
    const PricedPlace& here = tree_.priced[p];
    const ParameterBytes& real = tree_.charges.real();
    RatioWeights state;
    state.weight = here.weights[id_.index].weight / real.weight * real.optimizer;
    state.weight_hops = 1;
    std::vector<RatioExchange> made;
    tree_.charges.exchange_weights(made, id_, state, first, here.link);
    return made.empty() ? 0 : made.front().seconds / double(tree_.loop.checkpoint_every);
  }

  template <class Inside>
  double joined(std::uint32_t p, const RatioUpdates& updates, double first, const CountedParts& counted,
                const Inside& inside) const {
    const RatioPlace& here = tree_.places[p];
    double slower = inside(here.halves[0], into(p, 0, first, updates));
    if (!here.one_half_tells()) slower = std::max(slower, inside(here.halves[1], into(p, 1, first, updates)));
    return slower + exchanged(p, first, counted);
  }

  double at(std::uint32_t p, const RatioUpdates& updates, const Shares& shares, const CountedParts& counted) const {
    if (tree_.places[p].is_device()) return on_device(p, updates, counted);
    return joined(p, updates, shares[p], counted,
                  [&](std::uint32_t half, const RatioUpdates& there) { return at(half, there, shares, counted); });
  }

  Best best_of(std::uint32_t p, const RatioUpdates& updates) {
    if (tree_.places[p].is_device()) return {on_device(p, updates, {}), 0};
    if (const auto known = known_.find({p, updates}); known != known_.end()) return known->second;
    const auto with = [&](double first) {
      return joined(p, updates, first, {},
                    [&](std::uint32_t half, const RatioUpdates& there) { return best_of(half, there).seconds; });
    };
    Best best{with(0), 0};
    if (may_share(p))
      for (const double first : tree_.priced[p].ways)
        if (const double seconds = with(first); seconds < best.seconds * (1 - kGain)) best = {seconds, first};
    known_[{p, updates}] = best;
    return best;
  }

  void read_back(std::uint32_t p, const RatioUpdates& updates, Shares& shares) {
    const RatioPlace& here = tree_.places[p];
    if (here.is_device()) return;
    shares[p] = best_of(p, updates).share;
    read_back(here.halves[0], into(p, 0, shares[p], updates), shares);
    if (!here.one_half_tells()) read_back(here.halves[1], into(p, 1, shares[p], updates), shares);
  }

  const PricedTree& tree_;
  const OperatorId id_;
  const std::size_t largest_;
  std::vector<double> alone_;  ///< by place: of a device, what the operator computes but for its update
  std::map<std::pair<std::uint32_t, RatioUpdates>, Best> known_;
};

/// Among how many devices what is shared out, in which shares: of the operator's largest parameter.
struct Sharing {
  int replicas = 1;            ///< that hold the same of it
  std::vector<double> shares;  ///< of what they hold, one by one; what several have alike once
};

class Told {
 public:
  Told(const Scenario& scenario, const PricedTree& tree, OperatorId id, const OneUpdate& update)
      : scenario_(scenario),
        tree_(tree),
        id_(id),
        update_(update),
        access_(update.access()),
        tensor_(update.weight()) {}

  WeightUpdate of(const OneUpdate::Shares& chosen) const {
    WeightUpdate told;
    const Sharing sharing = sharing_at(0, chosen);
    told.shards = int(sharing.shares.size()), told.replicas = sharing.replicas;
    told.gather_bytes = element_bytes(tensor_, scenario_.settings.precision);
    told.whole = update_.added(update_.whole());
    told.chosen = told.sharded() ? update_.added(chosen) : told.whole;
    const auto [least, most] = std::minmax_element(sharing.shares.begin(), sharing.shares.end());
    const bool even = *most - *least < 1e-9;
    if (even && told.sharded()) told.padding = padding_of(told.shards);
    told.reason = reason(
        told, even ? "in equal shares" : fmt::format("in shares of {:.1f} to {:.1f} %", 100 * *least, 100 * *most));
    return told;
  }

 private:
  // Halves that do not hold it alike have several of it, which are told of by those that are cut into most shards.
  Sharing sharing_at(std::uint32_t p, const OneUpdate::Shares& chosen) const {
    const RatioPlace& here = tree_.places[p];
    if (here.is_device()) return {1, {1}};
    Sharing one = sharing_at(here.halves[0], chosen), other = sharing_at(here.halves[1], chosen);
    const int together = one.replicas + other.replicas;
    if (const double first = chosen[p]; first > 0) {
      for (double& share : one.shares) share *= first;
      for (const double share : other.shares) one.shares.push_back(share * (1 - first));
    } else if (other.shares.size() > one.shares.size()) {
      one = std::move(other);
    }
    if (update_.may_share(p)) one.replicas = together;
    return one;
  }

  /// Of what the first device holds.
  double padding_of(int shards) const {
    std::uint32_t p = 0;
    while (!tree_.places[p].is_device()) p = tree_.places[p].halves[0];
    const double held = tree_.charges.elements(tree_.model.operators[id_], access_, tree_.places[p].lengths[id_.index]);
    return held > 0 ? (std::ceil(held / shards) * shards - held) / held : 0;
  }

  std::string reason(const WeightUpdate& told, const std::string& shares) const {
    const auto text = [](double seconds) { return format_seconds(seconds); };
    if (told.replicas == 1)
      return update_.divided_in_unlike_ways()
                 ? "whole: the halves of a cut that both hold it divide it further in unlike ways, so that no two "
                   "devices hold the same of it"
                 : "whole: no two devices hold the same of it";
    if (!told.sharded()) {
      const UpdateSeconds everywhere = update_.added(update_.everywhere());
      return fmt::format(
          "whole: sharded over all {} replicas in equal shares a step would take {} for it instead of {}",
          told.replicas, text(everywhere.total()), text(told.whole.total()));
    }
    return fmt::format(
        "sharded over {} of {} replicas {}{}: the update falls from {} to {}, and the new weight is gathered for {} in "
        "{}; a step takes {} for it instead of {}",
        told.shards, told.replicas, shares, words_of_padding(told.padding), text(told.whole.update),
        text(told.chosen.update), text(told.chosen.gather), words_of_precision(told.gather_bytes),
        text(told.chosen.total()), text(told.whole.total()));
  }

  const Scenario& scenario_;
  const PricedTree& tree_;
  const OperatorId id_;
  const OneUpdate& update_;
  const Access& access_;
  const Tensor& tensor_;
};

/// The plan with a cut for each place, so that places whose devices are unlike may share out updates in unlike ways.
RatioPlan with_own_cuts(const RatioPlan& plan, const std::vector<RatioPlace>& places) {
  std::vector<std::uint32_t> number(places.size(), RatioPlan::kNoCut);
  std::uint32_t cuts = 0;
  for (std::size_t p = 0; p < places.size(); ++p)
    if (!places[p].is_device()) number[p] = cuts++;
  RatioPlan made = plan;
  made.cuts.clear();
  for (RatioPlan::Layer& layer : made.layers) layer.type.clear();
  for (const RatioPlace& place : places) {
    if (place.is_device()) continue;
    made.cuts.push_back(plan.cuts[place.cut]);
    for (std::size_t h = 0; h < 2; ++h) made.cuts.back().next[h] = number[place.halves[h]];
    for (std::size_t l = 0; l < plan.layers.size(); ++l) made.layers[l].type.push_back(plan.layers[l].type[place.cut]);
  }
  return made;
}

/// As RatioPlanUpdates has it. `whole`: the plan with whole updates, all counted; `elements`: by place, of
/// OneUpdate::count() with every update shared out everywhere.
std::array<std::int64_t, 3> held_by_zero(const PricedTree& tree, const RatioPlan& whole,
                                         const std::vector<std::array<std::int64_t, 2>>& elements) {
  const ParameterBytes& bytes = tree.charges.real();
  std::array<std::int64_t, 3> most{}, held{};
  for (std::size_t p = 0; p < tree.places.size(); ++p) {
    if (!tree.places[p].is_device()) continue;
    const auto [all, own] = elements[p];
    const std::int64_t others = whole.device_memory[whole.order[tree.places[p].first]] -
                                all * (bytes.weight + bytes.gradient + bytes.optimizer);
    for (std::size_t stage = 1; stage <= 3; ++stage) {
      const std::int64_t zero =
          (stage >= 3 ? own : all) * bytes.weight + (stage >= 2 ? own : all) * bytes.gradient + own * bytes.optimizer;
      if (others + zero > most[stage - 1]) most[stage - 1] = others + zero, held[stage - 1] = zero;
    }
  }
  return held;
}

RatioPlan without_updates(RatioPlan plan) {
  for (RatioPlan::Cut& cut : plan.cuts) cut.updates.clear();
  return plan;
}

}  // namespace

Expected<RatioPlan> numbered_as_updated(const Scenario& scenario, const RatioPlan& splits) {
  const RatioPlan whole = without_updates(splits);
  const RatioCharges charges(scenario, whole);
  if (auto checked = charges.check_tree(); !checked) return checked.error();
  const auto places = places_of(whole, *scenario.model, charges);
  if (!places) return places.error();
  return with_own_cuts(whole, *places);
}

Expected<RatioPlanUpdates> updates_on(const Scenario& scenario, const RatioPlan& splits, const TrainingLoop& loop,
                                      const RunContext& context) {
  const RatioPlan whole = without_updates(splits);
  PricedTree tree(scenario, whole, loop);
  if (auto done = tree.make(); !done) return done.error();
  RatioPlan plan = with_own_cuts(whole, tree.places);
  const std::size_t operators = tree.model.operators.size();
  for (RatioPlan::Cut& cut : plan.cuts) cut.updates.assign(operators, 0);
  RatioPlanUpdates made;
  std::vector<std::array<std::int64_t, 2>> elements(tree.places.size(), {0, 0});
  std::map<std::vector<double>, std::pair<OneUpdate::Shares, WeightUpdate>> decided;
  for (std::size_t o = 0; o < operators; ++o) {
    if (context.cancelled()) return cancelled_error();
    const OperatorId id(o);
    const auto& owns = tree.charges.uses().owns_parameter[o];
    if (std::find(owns.begin(), owns.end(), true) == owns.end()) continue;
    OneUpdate update(tree, id);
    auto& [shares, told] = decided[update.facts()];
    if (shares.empty()) {
      shares = update.best();
      told = Told(scenario, tree, id, update).of(shares);
    }
    update.count(update.everything_alike(), elements);
    made.weights.push_back(told);
    made.weights.back().weight = update.weight().name;
    std::size_t c = 0;
    for (std::size_t p = 0; p < shares.size(); ++p)
      if (!tree.places[p].is_device()) plan.cuts[c++].updates[o] = shares[p];
  }
  const ScenarioPtr counted = with_all_counted(scenario);
  const auto unshared = evaluate_ratio_plan(*counted, whole), shared = evaluate_ratio_plan(*counted, plan);
  if (!unshared) return unshared.error();
  if (!shared) return shared.error();
  CostBreakdown outside = unshared->cost;
  outside[MemoryPart::gradients] = 0;
  made.held = {held_on(shared->cost), held_on(unshared->cost), held_on(outside),
               held_by_zero(tree, *unshared, elements)};
  auto priced = evaluate_ratio_plan(scenario, std::move(plan));
  if (!priced) return priced.error();
  made.plan = std::move(*priced);
  return made;
}

}  // namespace turnpoint::update_sharding
