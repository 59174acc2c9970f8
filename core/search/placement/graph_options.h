// SPDX-License-Identifier: Apache-2.0
// What stands behind the name of a placement method: parameters that say what of a model is placed, which are the same
// for all and which no method sees, and the method's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/options.h"
#include "core/model/training_graph_options.h"
#include "core/search/placement/placement_method.h"

namespace turnpoint::search {

/// Recurrent layers in time steps, in their parts or whole; micro-batches; whole layers; gradients summed or kept.
const std::vector<OptionRecord>& graph_options();
/// As graph_options() has it unless told otherwise: recurrent layers run side by side only step by step.
TrainingGraphOptions usual_training_graph();

/// Reads "recurrent=parts:micro-batches=4". Usage error, of `whose`, as read_parameters() has them.
Expected<TrainingGraphOptions> read_graph_options(std::string_view whose, std::string_view text);

struct PlacementParameters {
  std::string text;          ///< all of it
  std::string own;           ///< what is for the method
  std::string of_the_graph;  ///< what is not; empty: usual_training_graph()
  TrainingGraphOptions graph = usual_training_graph();
};
/// Usage error where the method or the training graph has no such parameters.
Expected<PlacementParameters> read_placement_parameters(const placement::PlacementMethod& method,
                                                        std::string_view text);

}  // namespace turnpoint::search
