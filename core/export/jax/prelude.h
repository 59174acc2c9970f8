// SPDX-License-Identifier: Apache-2.0
// The parts of an explicit program that are the same for every plan: the functions that its lines call, how parameters
// are packed and cut, the optimizer's rule, and the comparison with the network in one piece.
#pragma once

#include <string_view>

#include "core/scenario/scenario.h"

namespace turnpoint::jax {

std::string_view first_lines();                     ///< imports, and virtual devices where they are asked for
std::string_view functions();                       ///< collectives, operators, packing
std::string_view update_rule(Optimizer optimizer);  ///< empty: there is none yet
std::string_view last_lines();                      ///< behind the step: placing, running, comparing

}  // namespace turnpoint::jax
