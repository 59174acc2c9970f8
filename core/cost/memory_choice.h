// SPDX-License-Identifier: Apache-2.0
// How one operator trades memory for time apart from its configuration: what of it backward computes again, who updates
// its parameters, and where the optimizer state lives. None of these changes a layout, so a search folds them into the
// operator's own short list of alternatives and no state is multiplied.
//
// Sharded weight update: Xu et al., arXiv 2004.13336 (resources/manual/mathematics.md, 5): devices that hold the same
// parameter each update one shard of it. Sharded weights are that paper's variant B (the weight stays sharded between
// iterations), known today as fully sharded data parallelism.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cost/layout.h"

namespace turnpoint {

enum class Update : std::uint8_t {
  replicated,       ///< gradients are summed, every holder updates all it holds
  sharded_state,    ///< as `sharded`, but every holder keeps the whole gradient until then (ZeRO stage 1)
  sharded,          ///< gradients are scattered, each holder updates a shard, the new weights are gathered
  sharded_weights,  ///< weights too stay sharded: gathered before forward, again before backward, never after the
                    ///< update
};
const char* to_string(Update update);
/// Whether every micro-batch sums its own gradients, since shards are all that is kept of them; the iteration does it
/// once otherwise.
constexpr bool sums_every_micro_batch(Update update) {
  return update == Update::sharded || update == Update::sharded_weights;
}

/// When the new weights of an update that is shared out become whole again on all its devices; of sharded weights,
/// which are gathered as they are read, nothing (resources/manual/mathematics.md, 5.2).
enum class WeightGather : std::uint8_t {
  after_update,         ///< behind the update, as they are read (variant A)
  before_forward,       ///< they stay sharded between iterations, and are gathered before forward (variant B)
  before_forward_bf16,  ///< likewise; those of 4 bytes that products alone read travel and are held in 2
};
const char* to_string(WeightGather gather);

struct MemoryChoice {
  Update update = Update::replicated;
  /// Mesh axes among whose devices the update is sharded. Of each parameter those count that do not split it.
  std::uint32_t update_axes = 0;
  bool offload = false;  ///< optimizer state lives in the host's memory and visits the device for the update
  bool recompute =
      false;  ///< the operator runs again in backward instead of what it would keep (internals, its output)
  /// Of sharded weights: a shard is whole rows (dimension 0), as many on every device, the last ones padded, as
  /// PyTorch's fully_shard cuts them. Otherwise the group's parameters are cut as one run.
  bool whole_rows = false;
  WeightGather gather = WeightGather::after_update;  ///< of Update::sharded and sharded_state
  /// Of shared out updates: every parameter is cut by itself, into shards of whole tiles as TPUs hold tensors in
  /// (core/model/shard_format.h), padded where they do not divide it.
  bool tiles = false;

  bool shares_out() const { return update != Update::replicated; }
  bool gathers_first() const {
    return gather != WeightGather::after_update && (update == Update::sharded || update == Update::sharded_state);
  }
  friend auto operator<=>(const MemoryChoice&, const MemoryChoice&) = default;
};

/// "recompute \u00b7 shard yx with weights \u00b7 offload"; empty for the plain choice.
std::string describe(const Mesh& mesh, const MemoryChoice& choice);

/// Among whom the update of a parameter may be shared out that lies whole on the devices of `whole_axes`, of which
/// those along `summed_axes` sum its gradient and the others have repeated the same work: every set of these axes, of
/// which those of one link level are alike, so that of as many devices the innermost stand for all. By rising number of
/// devices; one device is left out.
std::vector<std::uint32_t> sharing_groups(const Mesh& mesh, std::uint32_t whole_axes, std::uint32_t summed_axes);

/// The choices worth trying for an operator whose update may be shared out among the devices of any of `groups` (masks
/// of axes), in a fixed order from the plain one on: replicated, or sharded among them, the first group first; each
/// with the optimizer state here or at the host. `recompute` adds every one of them once more with recomputation.
struct ChoiceSwitches {
  bool update_sharding = true, offload = true, recompute = true;
  /// Sharded updates with whole gradients, which only micro-batches are a reason for: `sharded` needs less at the same
  /// price where gradients are summed once.
  bool whole_gradients = false;
  bool tiles = false;           ///< every shared out update has shards of tiles
  bool rounds_gathers = false;  ///< shared out updates, too, whose weights are gathered in 16 bits before forward
};
std::vector<MemoryChoice> enumerate_choices(const std::vector<std::uint32_t>& groups, const ChoiceSwitches& offered);

}  // namespace turnpoint
