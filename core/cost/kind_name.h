// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/model/model.h"

namespace turnpoint {

/// The kind of operator under which profiles keep measured times: "matmul", "batch-normalisation".
std::string_view kind_name(OperatorKind kind);

}  // namespace turnpoint
