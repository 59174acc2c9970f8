// SPDX-License-Identifier: Apache-2.0
// What equal and unequal halves have in common: which operand an operator goes by, and which loops types may cut.
#pragma once

#include <functional>

#include "core/search/accpar/model_layers.h"

namespace turnpoint::accpar {

/// The operand by which an operator follows its layer; nullptr: it has none.
const Access* followed_operand(const Model& model, const ModelLayers& layers, OperatorId id);
/// How the producer of a tensor sees it.
const Access& output_of(const Model& model, TensorId tensor);

/// Leaves a layer the units of each loop that `units` says; loops with fewer than two are cut by no type.
using LoopUnits = std::function<std::int64_t(const Operator&, std::uint8_t loop)>;
void restrict_loops(const Operator& op, std::size_t layer, ModelLayers& layers, const LoopUnits& units);

}  // namespace turnpoint::accpar
