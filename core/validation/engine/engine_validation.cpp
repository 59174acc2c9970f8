// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/engine_validation.h"

#include <fmt/format.h>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/machine_use.h"
#include "core/base/text.h"
#include "core/validation/engine/compare_engine.h"
#include "core/validation/run_needs.h"
#include "core/validation/validate_plans.h"

namespace turnpoint {

namespace {

/// What the processes need of this machine: its memory in any case, where they make the whole model first, and more
/// where they are to run on its processors.
Expected<void> check_machine(const Engine& engine, const Scenario& scenario, const Plan& plan,
                             const StepChoice& choice) {
  const HostRoom host = this_host();
  // Each process makes the whole model in fp32 before it is laid out.
  const double models = 4.0 * static_cast<double>(scenario.model->parameters) * plan.mesh.devices();
  if (engine.takes_model && host.memory_bytes > 0 && models > static_cast<double>(host.memory_bytes))
    return usage_error(
        fmt::format("each of {} processes makes the whole model first, {} together, and {} can be had on "
                    "this machine now",
                    plan.mesh.devices(), format_bytes(std::llround(models)), format_bytes(host.memory_bytes)));
  // Whether the engine can use GPUs that seem to be there only its program finds out, which holds the limit of ranks.
  std::error_code ignored;
  const bool gpus = choice.backend != ProbeBackend::cpu && std::filesystem::exists("/dev/nvidiactl", ignored);
  if (gpus) return {};
  if (!engine.one_process && plan.mesh.devices() > kMostCpuRanks)
    return usage_error(
        fmt::format("the plan is for {} devices, and without --launcher at most {} processes are started here",
                    plan.mesh.devices(), kMostCpuRanks));
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

Expected<ValidationReport> validate_by_engine(const EngineRequest& request, const Result& result, std::size_t point,
                                              const StepChoice& choice, const std::string& date,
                                              const RunContext& context) {
  const Engine& engine = *request.engine;
  if (engine.one_process && !request.launcher.empty())
    return usage_error(
        fmt::format("{} runs all devices of a machine in one process: --launcher is not for it", engine.name));
  const Scenario& scenario = *result.scenario;
  const Plan plan = result.plans->sharding(point);
  const auto job = engine_job_of(engine, scenario, plan, request.program, request.model_code, choice,
                                 request.launcher.empty() ? kMostCpuRanks : 0);
  if (!job) return job.error();
  if (request.launcher.empty())
    if (auto fits = check_machine(engine, scenario, plan, choice); !fits) return fits.error();
  auto python = find_engine_python(engine, request.python);
  if (!python) return python.error();
  EngineLaunch launch;
  launch.python = std::move(*python);
  launch.launcher = request.launcher;
  MachineUse use;
  auto measured = run_engine(*job, launch, context);
  if (!measured) return measured.error();
  if (use.disturbed()) measured->notes.emplace_back(kMeasuredMeanwhile);
  for (const std::string& remark : job->remarks) measured->notes.push_back("the program says: " + remark);
  return compare_engine(engine, scenario, plan, *measured, {point_label(result, point), date, false});
}

}  // namespace turnpoint
