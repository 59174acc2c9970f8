// SPDX-License-Identifier: Apache-2.0
// Which operators `recompute=op` runs again in backward: all of a layer but what is dear to compute, as torchtitan's
// selective checkpointing by operator does. Of the products with a weight every other one is kept, the first of a layer
// among them, and so is attention that is one kernel.
#pragma once

#include <vector>

#include "core/cost/transformer_roles.h"
#include "core/model/model.h"

namespace turnpoint {

/// [operator]. An operator whose input would then be nowhere does not run again.
std::vector<char> selective_operators(const Model& model, const TransformerRoles& roles);

}  // namespace turnpoint
