// SPDX-License-Identifier: Apache-2.0
// What search and place print where people read it: a dozen plans instead of all, by the words of the window.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/result.h"

namespace turnpoint::cli {

/// Columns of text: the first is set to the left, the last too, all others to the right. Width is counted in characters,
/// not in bytes.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

/// What was taken (model, hardware, batch, precision), a dozen plans of the first result that has some, and each
/// method's best. "fits" and the fastest that fits are judged by the simulated peak of the plan. Errors: cancelled.
Expected<std::string> results_table(const std::vector<ResultPtr>& results, const RunContext& context);

}  // namespace turnpoint::cli
