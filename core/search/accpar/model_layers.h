// SPDX-License-Identifier: Apache-2.0
// The layers of a model: operators made of products (convolutions, fully connected layers, attention, experts,
// recurrent layers) and embeddings, by their loop dimensions. Every other operator follows a layer: it works on
// whatever part of its operand is there.
//
// Of a layer's loops the batch is cut by type I; those that are summed over by type II; by type III those of the output
// that the first operand does not have, after those that all operands have (heads, groups, experts). Loops that must
// not be split have no units. The second operand of a product of two activations stands in the place of the weights,
// but its error is no sum over the batch, so that type I costs it nothing.
//
// Where several operands meet in one operator (a sum, a concatenation), it follows the largest, of equal ones the one
// with most layers before it. The others change to that one's state there. One that another layer has already taken, on
// the way to the first, is an identity shortcut from that layer's in state (layer_graph.h). A tensor that several
// layers read is priced for each of them, as paths of the paper's networks are. Parameters of followers
// (normalisations) are not counted.
#pragma once

#include "core/model/model.h"
#include "core/search/accpar/layer_graph.h"

namespace turnpoint::accpar {

inline constexpr std::uint32_t kNoLayer = 0xffffffff;

struct ModelLayers {
  LayerGraph graph;
  std::vector<OperatorId> operators;  ///< of each layer
  /// Loop dimensions that each type cuts, in the order in which they are cut; may be empty.
  std::vector<std::array<std::vector<std::uint8_t>, kTypes>> loops;
  /// The layer that an operator is or follows; kNoLayer: data, and what is made of data alone.
  IdVector<OperatorId, std::uint32_t> layer_of;

  bool follows(OperatorId op) const { return layer_of[op] != kNoLayer && operators[layer_of[op]] != op; }
};

/// Errors: a model without any layer.
Expected<ModelLayers> layers_of(const Model& model);

}  // namespace turnpoint::accpar
