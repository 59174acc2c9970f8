// SPDX-License-Identifier: Apache-2.0
// A loss over a vocabulary that may be split by its words (Megatron-LM: Shoeybi et al. 2019, arXiv 1909.08053, 3): what
// must be known of all logits of a row is the logarithm of the sum of their exponentials, and a part of the words adds
// one number to it.
#pragma once

#include "core/model/model.h"

namespace turnpoint {

/// Into more parts than this nobody splits a vocabulary; the numbers of all blocks together stay below a hundredth of
/// the logits of 30,000 words.
inline constexpr std::int64_t kMostLossBlocks = 64;

/// The model with every such loss as two operators; the same pointer where there is none, or where the words are odd in
/// number. The first (`loss_statistics`) reads the logits in gcd(words, kMostLossBlocks) blocks, and makes per row and
/// block the logarithm of the sum of exponentials, as a number and
/// what rounding to the run's precision lost of it. The loss reads all of these, and of the logits that of each row's
/// label alone. Both may be split by blocks: statistics are then gathered, and their gradients summed and scattered.
/// Operators are renumbered; the first is named after the loss.
ModelPtr split_loss(const ModelPtr& model);

/// Whether the operator touches single elements of this input instead of walking all of it, in both phases: rows of an
/// embedding's table, labels' logits of a loss that reads statistics.
bool touches_few(const Operator& op, std::size_t input);

}  // namespace turnpoint
