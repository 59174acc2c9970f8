// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/plan/result.h"

namespace turnpoint::cli {

/// "turning", "min-time", "min-memory" or an index from 0.
Expected<std::size_t> chosen_point(const std::string& text, const Result& result);

}  // namespace turnpoint::cli
