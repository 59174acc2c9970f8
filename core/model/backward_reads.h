// SPDX-License-Identifier: Apache-2.0
// Which weights backward of an operator reads, beside what the model marks as saved for it.
#pragma once

#include "core/model/model.h"

namespace turnpoint {

/// Whether the gradient of a normalisation's input asks for this input, its scale, though nothing is saved for it: a
/// parameter is there anyway.
bool reads_scale_unsaved(const Model& model, const Operator& op, std::size_t input);

/// Whether the task of an operator's backward that makes the gradients of its inputs reads this parameter. Gradients of
/// weights read none, but for a recurrent operator's, which come through its states.
bool backward_reads_weights(const Model& model, const Operator& op, std::size_t input);

}  // namespace turnpoint
