// SPDX-License-Identifier: Apache-2.0
// Chains of views as one view: a reshape that splits heads off and the transpose after it are one rearrangement, and
// what could not be split between them often can be once the intermediate shape is gone.
#pragma once

#include "core/model/model.h"

namespace turnpoint {

/// Folds every view whose input is a view that nobody else reads. Renumbers operators and tensors; `results` follows.
/// Call before `uses` is filled.
void fold_views(Model& model, std::vector<TensorId>& results);

}  // namespace turnpoint
