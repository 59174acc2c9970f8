// SPDX-License-Identifier: Apache-2.0
// Predicted against measured for a point of a result whose plan an engine carries out: what command line and window do
// alike.
#pragma once

#include <string>
#include <vector>

#include "core/plan/result.h"
#include "core/validation/engine/engine_run.h"
#include "core/validation/validation_report.h"

namespace turnpoint {

struct EngineRequest {
  const Engine* engine = nullptr;
  std::string program;                ///< what the engine's export format writes of the plan
  std::string model_code;             ///< as engine_job_of() takes it
  std::string python;                 ///< as find_engine_python() takes it
  std::vector<std::string> launcher;  ///< in words; empty: processes of this machine
};

/// The point's plan is a sharding plan. `date` as ISO 8601. Errors: engine_job_of()'s and run_engine()'s; usage where
/// this machine's processors have no room for the run, or a launcher is given to an engine of one process.
Expected<ValidationReport> validate_by_engine(const EngineRequest& request, const Result& result, std::size_t point,
                                              const StepChoice& choice, const std::string& date,
                                              const RunContext& context);

}  // namespace turnpoint
