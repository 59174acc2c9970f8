// SPDX-License-Identifier: Apache-2.0
// Whose update is sharded, over how many replicas, in which format, and how its weight is gathered: for each cluster of
// a training program what takes the least time, and why.
//
// Source: Xu et al., arXiv 2004.13336, 3 to 5; that each group size is tried is ours.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/shard_format.h"
#include "core/search/update_sharding/clusters.h"
#include "core/search/update_sharding/update_cost.h"

namespace turnpoint::update_sharding {

struct DecisionOptions {
  ShardLayout layout = ShardLayout::flat;
  double memory_bandwidth = 0;  ///< bytes/s that updates reach
  CollectivePrice price;
  double bucket_bytes = 0;  ///< of the messages that tensors travel in together; 0: each by itself
  /// Per element, that an update moves beside what the program says: of a kernel of its own that makes 16-bit weights.
  double more_bytes = 0;
  /// Products round their factors to 16 bits anyway, so that a weight that only products read can be gathered so.
  bool half_products = true;
  bool sharded_checkpoints = false;  ///< checkpoints take shards as they are
  /// The best of these, and whole updates summed in one phase. Empty: the best of shard_groups(), in two phases, too.
  std::vector<ShardGroups> groups;
};

/// A cluster's values that must be gathered, and what that takes.
struct GatherCost {
  ValueId value;
  int element_bytes = 4;
  double frequency = 1;  ///< times an iteration
  double seconds = 0;    ///< an iteration
  bool in_branch = false;
};

/// How one cluster is updated.
struct UpdateChoice {
  Variant variant = Variant::replicated;
  ShardGroups groups;
  ShardFormat format;            ///< of one shard where replicated
  int gather_element_bytes = 4;  ///< in which the weight travels at every step
  UpdateTime time;               ///< its gathers are those of the weight at every step
  double gathers_s = 0;          ///< others that readers force
  double sums_s = 0;             ///< of norms, rows and columns
  std::vector<GatherCost> gathers;

  double total() const { return time.total() + gathers_s + sums_s; }
  bool sharded() const { return variant != Variant::replicated; }
};

struct WeightDecision {
  std::string weight;  ///< its name; several joined by ", "
  UpdateBytes bytes;
  UpdateChoice chosen, replicated;
  std::optional<UpdateChoice> rejected;  ///< the best sharded one, where the weight is left whole
  std::string reason;                    ///< a sentence with the figures, without full stop
};

struct UpdateDecisions {
  std::vector<UpdateCluster> clusters;
  std::vector<WeightDecision> weights;    ///< one of each cluster
  double replicated_s = 0, chosen_s = 0;  ///< reductions and updates of a step
  /// Sums over shards that a step needs, and messages that carry them: those that need no others first are one,
  /// if they are summed among the same replicas.
  double sum_elements = 0;
  int sum_messages = 0;
  double weight_bytes = 0, auxiliary_bytes = 0;  ///< whole, of the program
  double inside_bytes = 0;                       ///< of both and of gathered weights, in the loop, on one replica
  double outside_bytes = 0;                      ///< of both outside the loop

  /// With so many bytes of live activations and gradients in the loop.
  MemoryPeaks memory(double live) const { return {inside_bytes + live, outside_bytes}; }
};

/// Errors: what check() says of the program, a bandwidth of 0 or less, no price, groups that do not divide the
/// replicas.
Expected<UpdateDecisions> decide_updates(const Program& program, const DecisionOptions& options);

/// Which sharded weights travel in one message, as positions in `weights`: those of one way, in buckets of fp32.
std::vector<std::vector<std::size_t>> messages_of(const UpdateDecisions& decisions, double bucket_bytes);

/// What a cluster costs if it is updated so. A variant that it cannot have is an infeasible error: a weight that the
/// loop carries elsewhere cannot stay sharded.
Expected<UpdateChoice> price_choice(const Program& program, const std::vector<UpdateCluster>& clusters,
                                    std::size_t cluster, Variant variant, const ShardGroups& groups,
                                    const DecisionOptions& options);

}  // namespace turnpoint::update_sharding
