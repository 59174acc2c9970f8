// SPDX-License-Identifier: Apache-2.0
// What a rank of a ratio plan keeps of its activations for backward, and what it makes again there instead.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_probe/step/ratio_program.h"

namespace turnpoint::step {

struct RatioKeeping {
  std::vector<char> again;              ///< [operator]: runs once more in backward; views of what does among them
  std::vector<std::vector<char>> kept;  ///< [operator][input]: an activation that is kept from forward on
  std::vector<std::vector<char>> lost;  ///< likewise: one that its producer makes again
  RatioKeeping(const RatioProgram& program, std::uint32_t rank);
};

}  // namespace turnpoint::step
