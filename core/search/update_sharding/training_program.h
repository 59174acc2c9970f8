// SPDX-License-Identifier: Apache-2.0
// The training program of a network: data-parallel training by an optimizer, with the loop around the step.
#pragma once

#include <cstdint>

#include "core/model/model.h"
#include "core/search/update_sharding/optimizer_graph.h"

namespace turnpoint::update_sharding {

/// The loop around the step. `every` k: in the step after which the number of steps made is a multiple of k; 0: never.
struct TrainingLoop {
  std::int64_t steps = 1000;
  std::int64_t checkpoint_every = 0;  ///< hands weights and auxiliaries to the host
  std::int64_t summary_every = 0;     ///< hands the loss and the weights to the host
  std::int64_t evaluation_every = 0;  ///< runs forward with the new weights on data of its own
};

/// Bytes of an element, 4 or 2; weights are kept in 4, and updated in 4 whatever the others have.
struct TrainingPrecision {
  int gradients = 4;     ///< as they are summed
  int auxiliaries = 4;   ///< as they are kept
  int read_weights = 4;  ///< as forward and backward read them: 2 makes a copy at every step
};

/// Loop, network, one all-reduce per trainable tensor (tied ones once) and its update.
/// Weights and auxiliaries leave the loop as the final checkpoint. Parameters of the entry keep their tensors' names;
/// an auxiliary has its weight's with "/0", "/1" behind it.
/// Errors: less than one replica or step, a negative period, elements of other sizes.
Expected<Program> training_program_of(const Model& model, Optimizer optimizer, const TrainingLoop& loop, int replicas,
                                      const TrainingPrecision& precision = {}, const OptimizerNumbers& numbers = {});

}  // namespace turnpoint::update_sharding
