// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/base/expected.h"
#include "core/plan/result.h"

namespace turnpoint::cli {

/// "turning", "min-time", "min-memory" or an index from 0; not asked for: the turning point, or, of what has none, the
/// fastest that fits. `option` is named in messages.
Expected<std::size_t> chosen_point(const std::optional<std::string>& asked, const Result& result,
                                   const char* option = "--point");

}  // namespace turnpoint::cli
