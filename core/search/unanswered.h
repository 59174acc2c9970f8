// SPDX-License-Identifier: Apache-2.0
// What a method that was asked and gave no answer leaves in a result file.
#pragma once

#include <string>
#include <string_view>

#include "core/plan/result.h"

namespace turnpoint {

/// A result without points: not exact, nothing certified, one note that says why. `method` is the name with its
/// parameters behind a colon, `search_s` what was spent on it in seconds.
ResultPtr unanswered(std::string_view method, const ScenarioPtr& scenario, const std::string& why, double search_s);

}  // namespace turnpoint
