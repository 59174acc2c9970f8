// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/expected.h"

namespace turnpoint::cli {

/// The result of one method ("manual:dp=4" with its parameters, or "manual" where there is one such) of a
/// turnpoint/results@1 document that several were searched into, read from `file`. Any other document is returned as it
/// is; `method`, where not empty, must then be its own. Wrong usage, naming what the file holds: no such method, several
/// such, or several methods and none named.
Expected<nlohmann::json> one_result(nlohmann::json document, const std::string& method, const std::string& file);

}  // namespace turnpoint::cli
