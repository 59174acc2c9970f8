// SPDX-License-Identifier: Apache-2.0
// What a JSON reader lets pass or cannot name: keys given twice, and the NaN and Infinity that Python writes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint {

/// The first such fault, named by its key; nothing where there is none or the text is broken in another way.
std::optional<Error> find_json_fault(std::string_view text, const std::string& path);

}  // namespace turnpoint
