// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/model/model.h"

namespace turnpoint {

/// Takes operators and tensors out of a model, whose others no longer name them, and renumbers those; `results`
/// follows. `uses` is left as it was.
void remove_from(Model& model, const std::vector<bool>& operators, const std::vector<bool>& tensors,
                 std::vector<TensorId>& results);

}  // namespace turnpoint
