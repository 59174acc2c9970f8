// SPDX-License-Identifier: Apache-2.0
// Results read back from files: a file holds points, the scenario they belong to and perhaps their plans; without
// them plans are found again.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/result.h"

namespace turnpoint {

/// Whether a turnpoint/result@1 document holds plans of its points, of all or of some.
bool holds_plans(const nlohmann::json& document);

/// The model or hardware file that the document's scenario names and that is neither there nor beside the document,
/// whose path `where` is; empty: all are there.
std::string missing_file(const nlohmann::json& document, const std::string& where);

/// Method, points, notes and turning point of the document, to choose a point by: without a scenario, bound and plans.
/// Errors: another format, a missing or wrong field, another number of plans than of points.
Expected<ResultPtr> read_points(const nlohmann::json& document, const std::string& where);

/// The document on its model and hardware. Where it holds plans, those of `points` are read, checked against the
/// scenario and re-evaluated (1e-9 relative); plans of other points must not be asked for. Where it holds none of one
/// of them, its search is repeated (same scenario and seed, same result) and must meet the document's points. `where`
/// names the file. Errors: those of read_points(), a model or hardware file that is gone or has changed, a plan that is
/// not one of this scenario or costs something else.
Expected<ResultPtr> reopen_result(const nlohmann::json& document, const std::string& where,
                                  const std::vector<std::size_t>& points, const RunContext& context);

}  // namespace turnpoint
