// SPDX-License-Identifier: Apache-2.0
// A training program with updates sharded: a reduce-scatter instead of a cluster's all-reduce, its work on shards, and
// gathers where readers need a value whole.
//
// Weights and auxiliaries that stay sharded are carried as shards: they are cut before the loop, gathered in branches
// that read them, and gathered after the loop. Shards are vectors, the reformatted tensor's elements in their order,
// with padding behind the last. Sums over shards leave the padding out, and are added up over the replicas that hold
// the other shards.
//
// Source: Xu et al., arXiv 2004.13336, 4.
#pragma once

#include <vector>

#include "core/search/update_sharding/decision.h"

namespace turnpoint::update_sharding {

/// `choices`: one for each cluster, in their order. A weight that is not gathered in every step stays sharded where the
/// choice says so; auxiliaries wherever they can. Errors: other numbers of choices, groups that do not divide the
/// replicas, a weight that cannot stay sharded.
Expected<Program> shard_updates(const Program& program, const std::vector<UpdateCluster>& clusters,
                                const std::vector<UpdateChoice>& choices);

/// Joins all-reduces of at most so many elements each into one, where none needs another's result, and they run in one
/// computation over the same groups. Instructions move as far as that needs.
Program combine_small_sums(const Program& program, std::int64_t most_elements);

}  // namespace turnpoint::update_sharding
