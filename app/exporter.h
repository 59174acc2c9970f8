// SPDX-License-Identifier: Apache-2.0
// What can be written to a file besides the chart's picture; runs on a worker.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/plan/result.h"

namespace turnpoint::app {

enum class ExportKind { plan_json, results_json, points_csv, plan_csv, plan_dot, plan_svg, plan_trace };

struct ExportInput {
  std::vector<ResultPtr> results;  ///< of all methods; the first one is the chart's subject
  ResultPtr picked;                ///< the result the plan belongs to
  std::size_t point = 0;
};

/// The file's text; an error where there is nothing to write ("no plan is picked").
Expected<std::string> export_text(ExportKind kind, const ExportInput& input);
Expected<void> export_to_file(ExportKind kind, const ExportInput& input, const std::filesystem::path& path);

}  // namespace turnpoint::app
