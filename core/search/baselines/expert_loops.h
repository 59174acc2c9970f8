// SPDX-License-Identifier: Apache-2.0
// Which operators of a model work expert by expert, found from the graph alone: products whose weight, operand and
// result all have the experts, and what stands between those. At the border of such a part tokens are handed to experts
// (a dispatch) and come back (a combination).
#pragma once

#include <cstdint>
#include <vector>

#include "core/cost/logical_dims.h"

namespace turnpoint::search {

struct ExpertLoop {
  int loop = -1;        ///< the operator's loop over experts; -1: it has none, or works with all of them (a router)
  bool inside = false;  ///< each expert's part is by itself; else at the border
};

struct ExpertLoops {
  std::vector<ExpertLoop> of;  ///< [operator]
  std::int64_t experts = 0;    ///< greatest common divisor of their numbers; 0: the model has none
};

ExpertLoops find_expert_loops(const Model& model);

}  // namespace turnpoint::search
