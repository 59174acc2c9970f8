// SPDX-License-Identifier: Apache-2.0
// Which weights backward of an operator reads.
#pragma once

#include "core/model/model.h"

namespace turnpoint {

/// Whether the task of an operator's backward that makes the gradients of its inputs reads this parameter. Gradients of
/// weights read none, but for a recurrent operator's, which come through its states.
bool backward_reads_weights(const Model& model, const Operator& op, std::size_t input);

}  // namespace turnpoint
