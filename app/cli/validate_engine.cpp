// SPDX-License-Identifier: Apache-2.0
#include "app/cli/validate_engine.h"

#include <fmt/format.h>
#include <filesystem>
#include <limits>

#include "core/base/text.h"
#include "core/export/format.h"
#include "core/validation/engine/compare_engine.h"
#include "core/validation/engine/engine_run.h"
#include "core/validation/run_needs.h"
#include "core/validation/validate_plans.h"

namespace turnpoint::cli {

namespace {

/// What the processes of this machine need, where they are to run on its processors.
Expected<void> check_processors(const Engine& engine, const Scenario& scenario, const Plan& plan,
                                const StepChoice& choice) {
  std::error_code ignored;
  const bool gpus = choice.backend != ProbeBackend::cpu && std::filesystem::exists("/dev/nvidiactl", ignored);
  if (gpus) return {};
  if (!engine.one_process && plan.mesh.devices() > choice.most_ranks)
    return usage_error(
        fmt::format("the plan is for {} devices, and without --launcher at most {} processes are started here",
                    plan.mesh.devices(), choice.most_ranks));
  const HostRoom host = this_host();
  StepChoice here = choice;
  here.backend = ProbeBackend::cpu;
  here.prove = false;
  // How long an engine takes on processors nobody predicts; its steps end with the budget, by themselves.
  here.budget_s = std::numeric_limits<double>::infinity();
  const auto needs = run_needs(scenario, plan, here, host);
  if (!needs) return needs.error();
  return check_room(*needs, here, host);
}

}  // namespace

Expected<const Engine*> engine_of(const EngineArguments& arguments) {
  if (const Engine* engine = find_engine(arguments.engine)) return engine;
  std::vector<std::string> known;
  for (const Engine& engine : engines()) known.emplace_back(engine.key);
  return usage_error(fmt::format("--engine knows {}, not '{}'", listed(known), arguments.engine));
}

Expected<ValidationReport> validate_by_engine(const EngineArguments& arguments, const ResultPtr& result,
                                              std::size_t point, const StepChoice& choice,
                                              const std::vector<std::string>& launcher, const std::string& date,
                                              const RunContext& context) {
  const auto engine = engine_of(arguments);
  if (!engine) return engine.error();
  if ((*engine)->one_process && !launcher.empty())
    return usage_error(
        fmt::format("{} runs all devices of a machine in one process: --launcher is not for it", (*engine)->name));
  const ExportFormat& format = *find_format((*engine)->format);
  const ExportSource source{{}, result, point};
  auto program = export_text(format, source, FormatNames::keys);
  if (!program) return program.error();
  // The format is for sharding plans alone, pipelines among them.
  const Plan plan = result->plans->sharding(point);
  const Scenario& scenario = *result->scenario;
  const auto job = engine_job_of(**engine, scenario, plan, std::move(*program), arguments.model_code, choice);
  if (!job) return job.error();
  if (launcher.empty())
    if (auto fits = check_processors(**engine, scenario, plan, choice); !fits) return fits.error();
  auto python = find_engine_python(**engine, arguments.python);
  if (!python) return python.error();
  EngineLaunch launch;
  launch.python = std::move(*python);
  launch.launcher = launcher;
  const auto measured = run_engine(*job, launch, context);
  if (!measured) return measured.error();
  auto report = compare_engine(**engine, scenario, plan, *measured, {point_label(*result, point), date, false});
  if (report)
    for (const std::string& remark : job->remarks) report->notes.push_back("the program says: " + remark);
  return report;
}

}  // namespace turnpoint::cli
