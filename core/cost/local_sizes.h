// SPDX-License-Identifier: Apache-2.0
// What a configuration leaves of an operator's sizes on one device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cost/layout.h"
#include "core/model/model.h"

namespace turnpoint {

/// Sizes of an operator's loop dimensions on one device.
std::vector<std::int64_t> local_dims(const Operator& op, const Mesh& mesh, const Configuration& configuration);

/// Elements of one dimension of an operand on a device that has these local sizes of the loop dimensions.
std::int64_t local_size(const Operator& op, const Tensor& tensor, const Access& access, std::size_t dimension,
                        std::span<const std::int64_t> local);

}  // namespace turnpoint
