// SPDX-License-Identifier: Apache-2.0
// `validate --engine`: the exported program of a plan, run by the engine that it is for.
#pragma once

#include <memory>
#include <string>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/result.h"
#include "core/validation/engine/engine_step.h"
#include "core/validation/validation_report.h"

namespace turnpoint::cli {

struct EngineArguments {
  std::string engine;  ///< empty: turnpoint-probe runs plans
  std::string model_code, python;
};

/// Usage error: --engine names none that there is.
Expected<const Engine*> engine_of(const EngineArguments& arguments);

/// Exports the plan of a point, runs it and compares. `launcher` in words; empty: processes of this machine.
/// Errors: the export's, engine_job_of()'s and run_engine()'s; usage where this machine has no room for it.
Expected<ValidationReport> validate_by_engine(const EngineArguments& arguments, const ResultPtr& result,
                                              std::size_t point, const StepChoice& choice,
                                              const std::vector<std::string>& launcher, const std::string& date,
                                              const RunContext& context);

}  // namespace turnpoint::cli
