// SPDX-License-Identifier: Apache-2.0
// What a task of a training graph does for its operator.
#pragma once

#include <cstdint>

namespace turnpoint {

enum class TaskRole : std::uint8_t {
  forward,
  backward,         ///< both gradients, or that of the inputs where that of the weights is a task of its own
  weight_gradient,  ///< made right after its backward
  accumulate,
  update,
  weights,  ///< has the parameters from the start and hands them to whoever reads them
};
inline constexpr int kTaskRoles = 6;
const char* to_string(TaskRole role);

}  // namespace turnpoint
