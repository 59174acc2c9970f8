// SPDX-License-Identifier: Apache-2.0
// The formulas of kernels.h, a family each.
#pragma once

#include <optional>

#include "core/export/jax/kernels.h"

namespace turnpoint::jax {

struct Formula {
  Expected<void> (*check)(const Place& place);
  void (*forward)(const Place& place, const Values& values, Lines& lines);
  void (*backward)(const Place& place, const Values& values, Lines& lines);
};

/// contractions.cpp: products, and views, which are products of one operand.
extern const Formula kProduct, kView;
/// pointwise.cpp
extern const Formula kElementwise, kSoftmax, kNormalisation, kReduction;
/// rows.cpp: look-ups, losses, slices and concatenations.
extern const Formula kEmbedding, kLossStatistics, kCrossEntropy, kSlice, kConcat;
/// windows.cpp
extern const Formula kConvolution, kPooling;

/// The dimension of an access whose first walker is this loop; -1: none.
int dimension_of(const Access& access, int loop);
/// The product of two activations whose result a softmax reads as it is: attention's scores, which built-in networks
/// and Hugging Face's scale by the root of a head's channels within. nullopt: not so.
std::optional<std::int64_t> channels_of_scores(const Model& model, const Operator& softmax);

}  // namespace turnpoint::jax
