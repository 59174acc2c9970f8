// SPDX-License-Identifier: Apache-2.0
// The same network at a smaller batch, made from the bound model alone: every loop dimension that carries the batch,
// and every tensor dimension that walks one, becomes `parts` times shorter; operators that carry it do that much less.
#pragma once

#include "core/base/expected.h"
#include "core/model/model.h"

namespace turnpoint {

/// Error: the batch cannot be cut into that many parts, or is hidden inside a merged dimension.
Expected<ModelPtr> micro_batch_model(const ModelPtr& model, std::int64_t parts);

}  // namespace turnpoint
