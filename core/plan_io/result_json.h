// SPDX-License-Identifier: Apache-2.0
// Results as turnpoint/result@1 and turnpoint/results@1 (resources/manual/formats.md); core/search/reopen.h reads them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/plan/result.h"

namespace turnpoint {

nlohmann::json write_result(const Result& result, bool with_plans);
nlohmann::json write_results(const std::vector<ResultPtr>& results, bool with_plans);

}  // namespace turnpoint
