// SPDX-License-Identifier: Apache-2.0
// How long every operator's loops are within one part of the devices of a ratio plan.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model.h"

namespace turnpoint {

using LoopLengths = std::vector<std::vector<std::int64_t>>;  ///< [operator][loop]

/// On all devices together: whole.
inline LoopLengths loop_lengths(const Model& model) {
  LoopLengths lengths(model.operators.size());
  for (std::size_t o = 0; o < lengths.size(); ++o)
    for (const LoopDimension& dim : model.operators[OperatorId(o)].dims) lengths[o].push_back(dim.size);
  return lengths;
}

}  // namespace turnpoint
