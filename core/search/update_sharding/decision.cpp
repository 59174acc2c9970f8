// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/search/update_sharding/decision_words.h"

namespace turnpoint::update_sharding {

namespace {

bool is_weight_after(const UpdateCluster& cluster, ValueId value) {
  return std::any_of(cluster.pairs.begin(), cluster.pairs.end(), [&](const CarriedPair& pair) {
    return pair.role == ParameterRole::weight && pair.after == value;
  });
}

bool weights_stay(const UpdateCluster& cluster) {
  return std::all_of(cluster.pairs.begin(), cluster.pairs.end(),
                     [](const CarriedPair& pair) { return pair.role != ParameterRole::weight || pair.stays; });
}

UpdateBytes bytes_of(const Program& program, const UpdateCluster& cluster, const DecisionOptions& options) {
  UpdateBytes bytes;
  bytes.gradient = cluster.gradient_bytes;
  for (const CarriedPair& pair : cluster.pairs) {
    const double own = program.values[pair.before].bytes();
    if (pair.role == ParameterRole::weight)
      bytes.weight += own;
    else
      bytes.auxiliaries.push_back(own);
  }
  bytes.other = cluster.input_bytes + cluster.output_bytes - bytes.moved() +
                options.more_bytes * static_cast<double>(cluster.elements());
  return bytes;
}

/// Prices the clusters of one program.
class ClusterPrices {
 public:
  ClusterPrices(const Program& program, const std::vector<UpdateCluster>& clusters, const DecisionOptions& options)
      : p_(program), clusters_(clusters), o_(options) {
    for (const UpdateCluster& cluster : clusters) {
      elements_ += static_cast<double>(cluster.elements());
      for (std::size_t round = 0; round < cluster.round_elements.size(); ++round) {
        if (rounds_.size() <= round) rounds_.resize(round + 1);
        rounds_[round] += cluster.round_elements[round];
      }
    }
  }

  /// Summed in one phase, or in two along rows of so many.
  UpdateChoice replicated(std::size_t c, int row) const {
    const UpdateCluster& cluster = clusters_[c];
    UpdateChoice choice;
    choice.groups = {ShardGroups::Way::whole, p_.replicas, row};
    choice.format = {cluster.elements(), 1, false, cluster.shape, cluster.shape};
    const UpdateBytes bytes = bytes_of(p_, cluster, o_);
    choice.time = update_time(bytes, Variant::replicated, choice.groups, 0, o_.memory_bandwidth,
                              links(cluster, gradient_element(cluster), 1));
    return choice;
  }

  /// What sharding is compared with: it must not win by sums in two phases, which replicas can have without it.
  UpdateChoice best_replicated(std::size_t c, const std::vector<ShardGroups>& groups) const {
    UpdateChoice best = replicated(c, 1);
    if (!o_.groups.empty()) return best;
    for (const ShardGroups& way : groups)
      if (way.way == ShardGroups::Way::rows)
        if (UpdateChoice other = replicated(c, way.row); other.total() < best.total()) best = std::move(other);
    return best;
  }

  Expected<UpdateChoice> sharded(std::size_t c, Variant variant, const ShardGroups& groups) const {
    const UpdateCluster& cluster = clusters_[c];
    if (variant == Variant::stays_sharded && !weights_stay(cluster))
      return Error{ErrorCode::infeasible, "a weight that the loop carries elsewhere cannot stay sharded", {}, {}};
    auto format = shard_format(cluster.shape, groups.shards(), o_.layout, cluster.keeps_dimensions);
    if (!format) return format.error();
    UpdateChoice choice{variant, groups, std::move(*format), 4, {}, 0, 0, {}};
    const UpdateBytes bytes = bytes_of(p_, cluster, o_);
    // Flat shards lie behind each other in a message of several tensors, which alone is filled up.
    const bool joined = o_.layout == ShardLayout::flat && o_.bucket_bytes > 0;
    const double padding = joined ? 0 : choice.format.padding(), larger = 1 + padding;
    // B's gathers are priced below, each in the precision of its readers.
    choice.time = update_time(bytes, variant, groups, padding, o_.memory_bandwidth,
                              links(cluster, gradient_element(cluster), larger));
    choice.time.update_s *= (1 + choice.format.padding()) / larger;
    if (variant == Variant::gathered_after || variant == Variant::naive)
      choice.time.gather_s =
          update_time(bytes, variant, groups, padding, o_.memory_bandwidth, links(cluster, 4, larger)).gather_s;
    for (const GatherCost& needed : gathers_of(cluster, variant)) {
      GatherCost cost = needed;
      const double size = static_cast<double>(cluster.elements()) * cost.element_bytes * larger;
      cost.seconds = cost.frequency * links(cluster, cost.element_bytes, larger).gather(groups, size);
      const bool weight = variant == Variant::stays_sharded && is_of_weight(cluster, cost.value) && !cost.in_branch;
      (weight ? choice.time.gather_s : choice.gathers_s) += cost.seconds;
      if (weight) choice.gather_element_bytes = cost.element_bytes;
      choice.gathers.push_back(cost);
    }
    for (std::size_t round = 0; round < cluster.round_elements.size(); ++round)
      choice.sums_s +=
          UpdateLinks(o_.price, rounds_[round] * 4).sum_of_parts(groups, cluster.round_elements[round] * 4);
    return choice;
  }

 private:
  static double gradient_element(const UpdateCluster& cluster) {
    return cluster.gradient_bytes / static_cast<double>(cluster.elements());
  }

  /// Of tensors with so many bytes an element, `larger` by padding as all others of their message are. A message holds
  /// the weights whose gradients fill a bucket.
  UpdateLinks links(const UpdateCluster& cluster, double element_bytes, double larger) const {
    const double elements = std::min(o_.bucket_bytes / gradient_element(cluster), elements_);
    return {o_.price, elements * element_bytes * larger};
  }

  static bool is_of_weight(const UpdateCluster& cluster, ValueId value) {
    return std::any_of(cluster.gathers.begin(), cluster.gathers.end(),
                       [&](const ForcedGather& gather) { return gather.value == value && gather.of_weight; });
  }

  /// What readers need beyond what the variant gathers anyway: one gather of a value for all readers outside branches
  /// and those inside, else one in every branch that reads it.
  std::vector<GatherCost> gathers_of(const UpdateCluster& cluster, Variant variant) const {
    struct Need {
      bool products = true;
      double frequency = 0;
    };
    std::map<ValueId, std::map<ComputationId, Need>> needs;
    // Where new weights are carried elsewhere, their gathers are those that the variant has anyway.
    std::set<ValueId> covered;
    const auto elsewhere =
        static_cast<std::size_t>(std::count_if(cluster.pairs.begin(), cluster.pairs.end(), [](const CarriedPair& pair) {
          return pair.role == ParameterRole::weight && !pair.stays;
        }));
    if (variant != Variant::stays_sharded)
      for (const ForcedGather& gather : cluster.gathers)
        if (gather.why == GatherReason::carried_elsewhere && covered.size() < elsewhere) covered.insert(gather.value);
    for (const ForcedGather& gather : cluster.gathers) {
      if (covered.contains(gather.value)) continue;
      const bool whole =
          variant != Variant::stays_sharded && (gather.of_weight || is_weight_after(cluster, gather.value));
      if (whole || gather.frequency <= 0) continue;
      Need& need = needs[gather.value][gather.branch];
      need.products &= gather.product;
      need.frequency = std::max(need.frequency, gather.frequency);
    }
    std::vector<GatherCost> costs;
    for (auto& [value, by_branch] : needs) {
      if (const auto outside = by_branch.find(ComputationId()); outside != by_branch.end()) {
        Need all = outside->second;
        for (const auto& [branch, need] : by_branch) all.products &= need.products;
        by_branch = {{ComputationId(), all}};
      }
      for (const auto& [branch, need] : by_branch) {
        const int own = p_.values[value].element_bytes;
        costs.push_back(
            {value, o_.half_products && need.products ? std::min(own, 2) : own, need.frequency, 0, branch.valid()});
      }
    }
    return costs;
  }

  const Program& p_;
  const std::vector<UpdateCluster>& clusters_;
  const DecisionOptions& o_;
  double elements_ = 0;
  std::vector<double> rounds_;
};

Expected<void> check_options(const Program& program, const DecisionOptions& options) {
  if (!(options.memory_bandwidth > 0))
    return bad_input(fmt::format("a memory of {} bytes/s updates nothing", options.memory_bandwidth));
  if (!options.price) return bad_input("collectives have no price");
  if (!(options.bucket_bytes >= 0))
    return bad_input(fmt::format("a bucket of {} bytes holds nothing", options.bucket_bytes));
  for (const ShardGroups& groups : options.groups)
    if (groups.replicas != program.replicas || groups.row < 1 || groups.replicas % groups.row != 0)
      return bad_input(fmt::format("a group of {} does not divide {} replicas", groups.row, program.replicas));
  return {};
}

std::string names_of(const UpdateCluster& cluster) {
  std::string names;
  for (const CarriedPair& pair : cluster.pairs)
    if (pair.role == ParameterRole::weight) names += (names.empty() ? "" : ", ") + pair.name;
  return names;
}

/// Weights, auxiliaries and gathered copies of one cluster on one replica, in the loop.
double held_bytes(const Program& program, const UpdateCluster& cluster, const UpdateChoice& choice) {
  const double share = (1 + choice.format.padding()) / choice.format.shards;
  double held = 0;
  for (const CarriedPair& pair : cluster.pairs) {
    const bool in_shards = choice.sharded() && pair.stays &&
                           (pair.role == ParameterRole::auxiliary || choice.variant == Variant::stays_sharded);
    held += program.values[pair.before].bytes() * (in_shards ? share : 1);
  }
  if (choice.variant == Variant::stays_sharded)
    held += static_cast<double>(cluster.elements()) * choice.gather_element_bytes;
  return held;
}

void count_memory(const Program& program, const DecisionOptions& options, UpdateDecisions& result) {
  for (const ValueId value : program.computations[program.entry].parameters) {
    const ParameterRole role = program.producer(value).role;
    if (role == ParameterRole::weight) result.weight_bytes += program.values[value].bytes();
    if (role == ParameterRole::auxiliary) result.auxiliary_bytes += program.values[value].bytes();
  }
  result.inside_bytes = result.outside_bytes = result.weight_bytes + result.auxiliary_bytes;
  double gathered = 0;
  for (std::size_t c = 0; c < result.clusters.size(); ++c) {
    const UpdateChoice& choice = result.weights[c].chosen;
    for (const CarriedPair& pair : result.clusters[c].pairs) result.inside_bytes -= program.values[pair.before].bytes();
    result.inside_bytes += held_bytes(program, result.clusters[c], choice);
    if (choice.variant == Variant::stays_sharded)
      gathered += static_cast<double>(result.clusters[c].elements()) * choice.gather_element_bytes;
  }
  if (options.sharded_checkpoints) result.outside_bytes = result.inside_bytes - gathered;
}

}  // namespace

Expected<UpdateChoice> price_choice(const Program& program, const std::vector<UpdateCluster>& clusters,
                                    std::size_t cluster, Variant variant, const ShardGroups& groups,
                                    const DecisionOptions& options) {
  if (auto fine = check_options(program, options); !fine) return fine.error();
  const ClusterPrices prices(program, clusters, options);
  if (variant == Variant::replicated || groups.shards() == 1)
    return prices.replicated(cluster, groups.way == ShardGroups::Way::whole ? groups.row : 1);
  return prices.sharded(cluster, variant, groups);
}

Expected<UpdateDecisions> decide_updates(const Program& program, const DecisionOptions& options) {
  auto clusters = find_clusters(program);
  if (!clusters) return clusters.error();
  if (auto fine = check_options(program, options); !fine) return fine.error();
  auto groups = shard_groups(program.replicas);
  if (!groups) return groups.error();
  if (!options.groups.empty()) groups = options.groups;

  UpdateDecisions result;
  result.clusters = std::move(*clusters);
  const ClusterPrices prices(program, result.clusters, options);
  // Round, how many replicas sum together, and along which axes.
  std::set<std::tuple<std::size_t, int, std::uint32_t>> messages;
  for (std::size_t c = 0; c < result.clusters.size(); ++c) {
    const UpdateCluster& cluster = result.clusters[c];
    WeightDecision decision{
        names_of(cluster), bytes_of(program, cluster, options), {}, prices.best_replicated(c, *groups), {}, {}};
    for (const ShardGroups& way : *groups)
      for (const Variant variant : {Variant::gathered_after, Variant::stays_sharded}) {
        if (way.shards() == 1) continue;
        auto choice = prices.sharded(c, variant, way);
        if (choice && (!decision.rejected || choice->total() < decision.rejected->total() * (1 - 1e-12)))
          decision.rejected = std::move(*choice);
      }
    decision.chosen = decision.replicated;
    if (decision.rejected && decision.rejected->total() < decision.replicated.total()) {
      decision.chosen = std::move(*decision.rejected);
      decision.rejected.reset();
      for (std::size_t r = 0; r < cluster.round_elements.size(); ++r) {
        messages.insert({r, decision.chosen.groups.shards(), decision.chosen.groups.row_axes});
        result.sum_elements += cluster.round_elements[r];
      }
    }
    decision.reason = reason_of(program, cluster, decision);
    result.replicated_s += decision.replicated.total();
    result.chosen_s += decision.chosen.total();
    result.weights.push_back(std::move(decision));
  }
  result.sum_messages = static_cast<int>(messages.size());
  count_memory(program, options, result);
  return result;
}

std::vector<std::vector<std::size_t>> messages_of(const UpdateDecisions& decisions, double bucket_bytes) {
  // Only tensors of one way of sharding can share a message.
  std::map<std::tuple<ShardGroups::Way, int, std::uint32_t>, std::vector<std::size_t>> alike;
  for (std::size_t w = 0; w < decisions.weights.size(); ++w)
    if (const UpdateChoice& choice = decisions.weights[w].chosen; choice.sharded())
      alike[{choice.groups.way, choice.groups.row, choice.groups.row_axes}].push_back(w);
  std::vector<std::vector<std::size_t>> messages;
  for (const auto& [way, members] : alike) {
    std::vector<ShardFormat> formats;
    for (const std::size_t w : members) formats.push_back(decisions.weights[w].chosen.format);
    for (const ShardBucket& bucket : bucket_shards(formats, static_cast<std::int64_t>(bucket_bytes / 4))) {
      messages.emplace_back();
      for (const std::size_t t : bucket.tensors) messages.back().push_back(members[t]);
    }
  }
  return messages;
}

}  // namespace turnpoint::update_sharding
