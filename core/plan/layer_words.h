// SPDX-License-Identifier: Apache-2.0
// A sharding plan layer by layer in practitioners' words, by the rules for the whole (resemblance.h).
//
// Parts. A part is what layer_name() says of paths: a layer where they are numbered; what stands outside of layers
// (token table, head) under the first word of its path. What has no weight belongs to the part before it: the loss to
// the head, a pooling to its convolution. Where no path is numbered, a transformer's layers are found from the graph
// (transformer_roles.h). Parts that neither compute nor hold weights are left out.
//
// Rows. Parts one after the other, in the model's order, that say the same on the same stages are one line; of how many
// operators run again it says the fewest and the most, since unlike layers have unlike many.
#pragma once

#include <string>
#include <vector>

#include "core/plan/resemblance.h"

namespace turnpoint {

/// Parts of the model, one after the other, that are treated alike.
struct LayerWords {
  std::vector<std::string> layers;  ///< in the model's order: "layer0", "layer1"
  std::string words;                ///< "data parallel 4 x tensor parallel 2 (column, row), ZeRO-3"
  std::vector<int> stages = {};     ///< of a pipeline, on which these parts are, from 0; empty: the plan has none
};

/// Of a plan of this model; a plan with micro-batches or stages may be of one of them. Empty: it has other operators.
std::vector<LayerWords> words_by_layer(const Plan& plan, const Model& model);

/// "layer0 to layer30", "layer8 to layer15 on stage 1"; of more than three names that do not count on "conv1 to fc8 (11
/// parts)".
std::string place_of(const LayerWords& line);
/// "layer0 to layer30: tensor parallel 2 (column, row), ZeRO-3".
std::string describe(const LayerWords& line);

}  // namespace turnpoint
