// SPDX-License-Identifier: Apache-2.0
// What a weight's update costs in time and memory, replicated or sharded.
//
// One replica reads gradient, weight and auxiliaries and writes weight and auxiliaries: U = (g + 2 (w + v)) / H, bytes
// over memory bandwidth. Replicated, a step takes all-reduce(g) + U. Sharded N times,
//   A   reduce-scatter(g) + U / N + all-gather(w)         the weight is whole between steps
//   B   reduce-scatter(g) + U / N + all-gather(x)         the weight stays sharded, and is gathered in x bytes to be
//   read naive  A + all-gather of every auxiliary              nothing stays sharded
// and padding makes shards, and what is gathered or scattered, larger by its share.
//
// Sources: Xu et al., arXiv 2004.13336, 4 and 5 (variants, sharding inside rows of replicas alone); Rajbhandari et al.,
// arXiv 1910.02054, 3 (bytes of ZeRO's stages).
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/cluster.h"

namespace turnpoint::update_sharding {

/// Replicas 0, stride, 2 stride, ..: one of the equal groups that a collective runs on at once. Where groups are told
/// as axes of a mesh, those are what counts.
struct ReplicaSet {
  int size = 1, stride = 1;
  std::uint32_t axes = 0;  ///< bit mask; 0: not told
};
/// Seconds. `bytes`: all of a group's tensor, before scattering or after gathering. A set of one costs nothing.
using CollectivePrice = std::function<double(Collective, ReplicaSet, double bytes)>;
/// Rings: (g - 1) (latency + bytes / (g bandwidth)), twice for an all-reduce. Error: a bandwidth of 0 or less, or a
/// latency below 0.
Expected<CollectivePrice> ring_price(double bandwidth, double latency_s);

/// In how many shards a tensor is held, and by whom.
struct ShardGroups {
  enum class Way : std::uint8_t {
    whole,     ///< replicated; with rows of 2 or more the sum is made in two phases all the same
    all,       ///< every replica has a shard of its own, in one phase
    rows,      ///< shards inside rows of neighbours; replicas in the same place of a row hold the same
    two_phase  ///< every replica has a shard of its own, along rows first and columns then
  };
  Way way = Way::whole;
  int replicas = 1;
  int row = 1;                                  ///< replicas in a row; all of them for `all`
  std::uint32_t row_axes = 0, column_axes = 0;  ///< of a mesh of all replicas, as bit masks; 0: not told

  int shards() const { return way == Way::whole ? 1 : way == Way::rows ? row : replicas; }
  int columns() const { return replicas / row; }
};
/// All ways over all divisors of the replicas, those with fewest phases and shards first. Error: less than one replica.
Expected<std::vector<ShardGroups>> shard_groups(int replicas);

/// What collectives on a tensor of so many bytes take, by group. A weight that travels in a message with others pays
/// its part of it: t(B) b / B.
class UpdateLinks {
 public:
  /// `message_bytes`: of what travels together; below a tensor's own bytes, that travels alone.
  UpdateLinks(CollectivePrice price, double message_bytes) : price_(std::move(price)), message_(message_bytes) {}

  double all_reduce(int replicas, double bytes) const;  ///< over all replicas
  /// The sum, each replica with its shard. Of `whole` everything, in two phases where there are rows: reduce-scatter
  /// along rows, all-reduce along columns, all-gather along rows.
  double scatter(const ShardGroups& groups, double bytes) const;
  double gather(const ShardGroups& groups, double bytes) const;        ///< everybody's shard to everybody
  double sum_of_parts(const ShardGroups& groups, double bytes) const;  ///< of what replicas with other shards summed

 private:
  double part(Collective kind, ReplicaSet set, double bytes) const;
  CollectivePrice price_;
  double message_ = 0;
};

/// Bytes that a device sends for the scatter and the gather of n bytes, on rings: the same for every way.
double bytes_sent(const ShardGroups& groups, double bytes);
/// Steps of those rings, one behind the other.
int ring_steps(const ShardGroups& groups);

/// Bytes of one weight, unsharded.
struct UpdateBytes {
  double gradient = 0, weight = 0;
  std::vector<double> auxiliaries;  ///< each by itself
  double gathered = 0;              ///< of the weight as B gathers it
  double copy = 0;                  ///< of a 16-bit copy that the update writes too, and that is read; 0: none
  double other = 0;                 ///< what the update reads or writes besides

  double moved() const;  ///< by one update
};

enum class Variant : std::uint8_t { replicated, gathered_after, stays_sharded, naive };
const char* to_string(Variant variant);

struct UpdateTime {
  double reduce_s = 0, update_s = 0, gather_s = 0;
  double total() const { return reduce_s + update_s + gather_s; }
};
/// `padding`: share of the tensor; not used where it is replicated, nor on one replica.
UpdateTime update_time(const UpdateBytes& bytes, Variant variant, const ShardGroups& groups, double padding,
                       double memory_bandwidth, const UpdateLinks& links);

/// Bytes of a replica at its peak: W weights, V auxiliaries, P live activations and gradients.
struct MemoryPeaks {
  double inside = 0;   ///< the training loop
  double outside = 0;  ///< where weights and auxiliaries are whole: what checkpoints read
  double peak() const { return inside > outside ? inside : outside; }
};
/// `gathered`: bytes of the gathered weights that live at once in B; not used in others. With `sharded_checkpoints`
/// nothing is whole outside the loop either.
MemoryPeaks memory_peaks(double weights, double auxiliaries, double live, Variant variant, int shards,
                         double gathered = 0, bool sharded_checkpoints = false);

/// Bytes a device of ZeRO's stages 0 to 3 for mixed-precision training: 2 of weight, 2 of gradient and `state` of
/// optimizer a parameter, cut into N by stage. Error: another stage, or less than one device.
Expected<double> zero_bytes(int stage, double parameters, double state, int devices);

/// Bytes of weights, gradients and states on one replica, of several weights that are whole after every step: whole,
/// in the loop as their updates are sharded, outside it where checkpoints read all of it, and as ZeRO's stages 1 to 3
/// would hold them over all replicas.
struct HeldBytes {
  double whole = 0, inside = 0, outside = 0;
  std::array<double, 3> zero{};
  /// `shards` 1: this weight's update is whole.
  void add(const UpdateBytes& bytes, int shards, int replicas);
};

}  // namespace turnpoint::update_sharding
