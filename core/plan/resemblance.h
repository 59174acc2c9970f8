// SPDX-License-Identifier: Apache-2.0
// What a sharding plan resembles, in the words of those who train: data, tensor, context and expert parallel, pipeline,
// ZeRO's stages, checkpointing. A rule decides from the plan alone, whatever method found it:
//
// Names. An operator's split on a mesh axis is named by the loop that is split. Loops of a product that its weight has
// are row parallel where they are summed over, vocabulary or expert parallel by their name, else column parallel. Other
// loops have their own name: batch (data), sequence (context), places of images, heads, channels.
//
// Axes. An axis is what most of the time of products with weights and of attentions makes of it. Where less than a
// tenth of that time is split on it, its devices compute alike. Experts are asked apart, since their axis is often the
// data's for everything else.
//
// Share. An operator follows if every axis is for it what it is for the plan, or could not be. Along tensor-parallel
// axes operators other than products with weights and attentions may also be repeated, or split by sequence as
// Megatron's sequence parallelism does. So may products and look-ups of a vocabulary that tensor groups cannot divide,
// which engines leave whole on every device; the sentence says so. What does not follow is asked once more: most plans
// that are mixtures are one of two.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/plan/plan.h"

namespace turnpoint {

enum class Parallel : std::uint8_t { none, data, context, spatial, expert, column, row, vocabulary, heads, channels };
inline constexpr int kParallels = 10;
/// "column parallel"; of `none` "repeated".
const char* to_string(Parallel parallel);
/// Of an operator that this loop splits; `none` for -1.
Parallel parallel_of(const Model& model, const Operator& op, int loop);

/// Products with a weight, look-ups and attentions, which other operators follow.
bool sets_the_strategy(const Model& model, const Operator& op);

/// Which ways devices share the work: how many there are of each, 1: not so.
struct Ways {
  std::int64_t data = 1, tensor = 1, context = 1, spatial = 1, expert = 1;
  std::int64_t repeated = 1;       ///< devices that compute alike
  bool sequence_parallel = false;  ///< most norms lie by sequence along the tensor-parallel axes
  double share = 1;                ///< of the time of computing that follows
  double whole_words = 0;          ///< of that time, in products and look-ups of an undivided vocabulary
  /// How what follows and decides is split along the tensor-parallel axes: by columns, rows, vocabulary, heads,
  /// channels.
  std::array<bool, kParallels> cuts{};
};

/// `Ways`: what most of the plan is; below kNamedShare it is no such strategy.
struct Resemblance : Ways {
  std::int64_t devices = 1;
  std::optional<Ways> second;  ///< of what does not follow, where that is more than kWorthSaying
  int stages = 1, chunks = 1, micro_batches = 1;
  std::array<int, kParallels> operators{};  ///< products with a weight, attentions and look-ups, split so on any axis
  /// Operators with weights, and those of them whose update is sharded, by ZeRO's stage.
  int weighted = 0;
  std::array<int, 4> zero{};
  /// Hybrid sharding, by ZeRO's stage: the devices that share one copy of the weights or their state, and how many such
  /// groups hold the same; of experts, which lie on several devices already, `shards` is that of everything else.
  /// 1: all devices that hold the same share one copy, or operators have it in several ways.
  std::array<std::int64_t, 4> shards{1, 1, 1, 1}, copies{1, 1, 1, 1};
  int gathered_first = 0;                          ///< operators whose new weights come before the next forward
  int offloaded = 0;                               ///< operators whose optimizer state lives with the host
  int recomputed = 0;                              ///< operators that choose to run again in backward
  bool layers_again = false, cores_again = false;  ///< whole layers, or the cores of attentions, run again
  /// As PlanPipeline has them.
  bool forwards_first = false, sums_behind = false, beside_products = false;

  /// Shares of the time of computing: a name is for what most of a plan does; a second part below one in twenty is less
  /// than readers of such a sentence care about.
  static constexpr double kNamedShare = 0.5, kWorthSaying = 0.05;
  bool named() const { return share >= kNamedShare; }
};

/// Of a plan of this model; a plan with micro-batches or stages may be of one of them.
Resemblance resemblance_of(const Plan& plan, const Model& model);
/// Of parts of it, each told by the same rules from its own operators; shares are of the part's own computing. A part
/// without products, attentions and look-ups decides for itself. What a part without products and attentions splits by
/// sequence along axes that are tensor parallel for the whole plan is sequence parallelism, not context parallelism.
std::vector<Resemblance> resemblances_of(const Plan& plan, const Model& model,
                                         const std::vector<std::vector<OperatorId>>& parts);
/// " over 8, repeated 4 times": behind what is sharded; empty where all that hold the same share one copy.
std::string hybrid_words(std::int64_t shards, std::int64_t copies);
/// "Data parallel 8, for 59 % of the computing, data parallel 4 x tensor parallel 2 for 40 %; 4 micro-batches; weights
/// sharded (ZeRO-3) for 225 of 291 operators; checkpointing in 323 operators."
std::string describe(const Resemblance& plan);
/// "Column parallel in 72 operators, row parallel in 24, ..."; empty where no product is split so.
std::string describe_products(const Resemblance& plan);

}  // namespace turnpoint
