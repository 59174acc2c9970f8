// SPDX-License-Identifier: Apache-2.0
// The update of one weight as instructions of a training program, by optimizer. LARS, LAMB and Adafactor read norms and
// sums over rows and columns: reductions of what is otherwise elementwise.
//
// Sources: Kingma and Ba, arXiv 1412.6980 (Adam); You et al., arXiv 1708.03888 (LARS) and 1904.00962 (LAMB); Shazeer
// and Stern, arXiv 1804.04235 (Adafactor).
#pragma once

#include <vector>

#include "core/scenario/scenario.h"
#include "core/search/update_sharding/builder.h"

namespace turnpoint::update_sharding {

/// Numbers of an optimizer; each uses those that it has.
struct OptimizerNumbers {
  double rate = 0.01, momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 1e-4, trust = 1e-3;
  double clip = 1;  ///< Adafactor: the largest root mean square of an update
};

/// Shapes of what the optimizer keeps for a weight: nothing for SGD, one like the weight for momentum and LARS, two for
/// Adam and LAMB. Adafactor keeps a sum per row and per column, where a row is all leading dimensions together and a
/// column the last; of a vector one like it.
std::vector<Shape> auxiliary_shapes(Optimizer optimizer, const Shape& weight);

/// What all updates of a step share: scalars that follow from the step's number.
struct StepScalars {
  ValueId first_correction, second_correction;  ///< 1 - beta^t; invalid where the optimizer has none
};
/// `step`: a scalar, the number of the step counted from 1.
StepScalars step_scalars(Builder& builder, Optimizer optimizer, const OptimizerNumbers& numbers, ValueId step);

struct UpdatedWeight {
  ValueId weight;
  std::vector<ValueId> auxiliaries;
};
/// Appends the update of a weight by its summed gradient. Vectors take no trust ratio, as is usual for biases and
/// scales.
UpdatedWeight append_update(Builder& builder, Optimizer optimizer, const OptimizerNumbers& numbers,
                            const StepScalars& scalars, ValueId gradient, ValueId weight,
                            const std::vector<ValueId>& auxiliaries);

}  // namespace turnpoint::update_sharding
