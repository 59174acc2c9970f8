// SPDX-License-Identifier: Apache-2.0
// Results read back from files: a file holds points and the scenario they belong to; plans are found again.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/result.h"

namespace turnpoint {

/// Repeats the search that a turnpoint/result@1 document describes (same scenario and seed, same result) and checks
/// that it meets the document's points. `where` names the file. Errors: another format, a missing or wrong field, a
/// model or hardware file that is gone or has changed.
Expected<ResultPtr> reopen_result(const nlohmann::json& document, const std::string& where, const RunContext& context);

}  // namespace turnpoint
