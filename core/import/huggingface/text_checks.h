// SPDX-License-Identifier: Apache-2.0
// What a JSON reader lets pass or cannot read: keys given twice, and the NaN and Infinity that Python writes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint {

/// The first such fault, named by its key; nothing where there is none.
std::optional<Error> find_json_fault(std::string_view text, const std::string& path);

/// NaN, Infinity and -Infinity, which Python writes though JSON has none, as strings: whoever reads such a key refuses
/// it by name, and nobody else is troubled.
std::string quote_non_numbers(std::string_view text);

}  // namespace turnpoint
