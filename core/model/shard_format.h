// SPDX-License-Identifier: Apache-2.0
// How one tensor is cut into equal shards: brought to a shape whose leading dimension the shards divide, with padding
// behind the last element where they do not. Every format keeps the elements in their order, so that shard i holds the
// elements [i s, (i + 1) s) of the padded tensor, s elements to a shard.
//
// Source: Xu et al., arXiv 2004.13336, 4.1; flat buckets as ZeRO has them (Rajbhandari et al., arXiv 1910.02054).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint {

enum class ShardLayout : std::uint8_t {
  flat,            ///< a vector: GPUs, whose memory has no tiles
  reshape_and_pad  ///< leading dimensions combined, the last two left to their tiles of 8 x 128; or tiles as rows: TPUs
};

struct ShardFormat {
  std::int64_t elements = 0;  ///< of the tensor
  int shards = 1;
  bool tiles = false;                  ///< the same bytes read as rows of 8 x 128
  std::vector<std::int64_t> reshaped;  ///< {elements}, combined leading dimensions, or {rows, 8, 128}
  std::vector<std::int64_t> padded;    ///< the same with a leading dimension that the shards divide

  std::int64_t padded_elements() const;
  std::int64_t shard_elements() const { return padded_elements() / shards; }
  double padding() const;  ///< elements added, as a share of the tensor's
  /// The tensor's elements in shard i: first and one past the last, without padding; empty behind the tensor's end.
  std::pair<std::int64_t, std::int64_t> range(int i) const;
  std::string words() const;  ///< "[9,256,256], padded to [10,256,256]"
};

/// What padding from one shape to another adds, as a share of the first.
double padding_between(std::span<const std::int64_t> from, std::span<const std::int64_t> to);

/// The combination of leading dimensions with least padding; above a quarter, rows of tiles if the shape fills its
/// tiles and they pad less. `keeps_dimensions`: sums over rows or columns are computed on the shards, so that no
/// dimensions may be combined, nor tiles read as rows; flat shards put such parts in their place instead, whatever is
/// summed. Errors: less than one shard, an empty shape or one with a negative size.
Expected<ShardFormat> shard_format(std::span<const std::int64_t> shape, int shards, ShardLayout layout,
                                   bool keeps_dimensions = false);

/// What shard_format() of ShardLayout::reshape_and_pad pads a tensor to, where only the number of elements is asked
/// for. A scalar is one element.
std::int64_t padded_elements(std::span<const std::int64_t> shape, std::int64_t shards, bool keeps_dimensions = false);

/// One message for the shards of several tensors. The combined shard i holds shard i of every tensor, one behind the
/// other, so that a single reduce-scatter or all-gather of it leaves every tensor sharded in its own format.
struct ShardBucket {
  std::vector<std::size_t> tensors;         ///< positions in what the bucket was made of
  std::vector<std::int64_t> shard_offsets;  ///< where each begins in the combined shard, elements
  std::int64_t shard_elements = 0;
};
/// In the given order; a tensor larger than a bucket travels alone. Tensors with other numbers of shards begin a bucket
/// of their own. `bucket_elements` below 1: every tensor travels alone.
std::vector<ShardBucket> bucket_shards(std::span<const ShardFormat> formats, std::int64_t bucket_elements);

}  // namespace turnpoint
