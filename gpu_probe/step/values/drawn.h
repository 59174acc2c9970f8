// SPDX-License-Identifier: Apache-2.0
// The parameters and optimizer states that a step of a proof begins with: by counter, so that every rank draws its own
// part and all parts fit together.
#pragma once

#include "core/model/model.h"
#include "gpu_probe/step/values/options.h"
#include "gpu_probe/step/values/region.h"

namespace turnpoint::step {

enum class DrawnFor : std::uint64_t { weight = 1, first_state = 2, second_state = 3 };

/// Elements [first, first + count) of a parameter's region, row-major, to `to`. Tied parameters are drawn alike.
void draw_parameter(const Model& model, TensorId parameter, const Region& region, std::int64_t first,
                    std::int64_t count, DrawnFor what, const StepOptions& options, double* to);

}  // namespace turnpoint::step
