// SPDX-License-Identifier: Apache-2.0
// A loss over a vocabulary that may be split by its words (Megatron-LM: Shoeybi et al. 2019, arXiv 1909.08053, 3): what
// must be known of all logits of a row is the logarithm of the sum of their exponentials and the label's logit, and a
// part of the words adds one number to each.
#pragma once

#include "core/model/model.h"

namespace turnpoint {

/// Blocks of words, and so the most devices that can share them. A power of two, as tensor groups are: a group of three
/// cannot split the words. The numbers of all blocks together stay below a hundredth of the logits of 30,000 words.
inline constexpr std::int64_t kMostLossBlocks = 64;

/// The model with every such loss as two operators; the same pointer where there is none, or where the words are odd in
/// number. The first (`loss_statistics`) reads the logits in gcd(words, kMostLossBlocks) blocks, and makes kLossNumbers
/// numbers per row and block: the logarithm of the sum of exponentials, what rounding to the run's precision lost of
/// it, and the logit of the row's label where the block has it, else 0. It may be split by blocks. The loss reads all
/// of these numbers and nothing else; both keep what they read. Operators are renumbered; the first is named after the
/// loss.
ModelPtr split_loss(const ModelPtr& model);
inline constexpr std::int64_t kLossNumbers = 3;

/// Whether it is the second of the two.
inline bool reads_statistics(const Operator& op) {
  return op.kind == OperatorKind::cross_entropy && op.inputs.size() == 1;
}

}  // namespace turnpoint
