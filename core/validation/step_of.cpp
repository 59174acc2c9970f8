// SPDX-License-Identifier: Apache-2.0
#include "core/validation/step_of.h"

#include <fmt/format.h>

#include "core/cost/operator_cost.h"
#include "core/plan/micro_batch.h"
#include "core/validation/placement_step.h"
#include "core/validation/ratio_step.h"

namespace turnpoint {

namespace {

Error refused(std::string what, std::string hint) {
  Error error = usage_error(std::move(what));
  error.hint = std::move(hint);
  return error;
}

}  // namespace

namespace {

constexpr const char* kSlowHint =
    "leave --slow out, or search with accpar, hypar or owt on hardware whose devices differ";

/// What of a schedule the probe does not know; empty: it knows all of it.
std::string not_run_yet(const PlanPipeline& schedule) {
  std::vector<std::string> parts;
  if (schedule.stages > 1) parts.push_back(fmt::format("is a pipeline of {} stages", schedule.stages));
  if (schedule.recompute) parts.emplace_back("keeps the inputs of layers only and runs whole layers again");
  if (schedule.beside_products)
    parts.emplace_back("lets collectives run beside products");
  if (parts.empty()) return {};
  return fmt::format("the plan {}, which cannot be run yet", fmt::join(parts, " and "));
}

}  // namespace

Expected<StepJob> step_job_of(const Scenario& scenario, const Plan& plan, const StepChoice& choice) {
  if (!choice.slow.empty())
    return refused("a rank is made slower in ratio plans alone, whose devices may be unlike", kSlowHint);
  return step_job_of(scenario, plan, choice, plan.mesh.devices(), true);
}

Expected<StepJob> step_job_of(const Scenario& scenario, const AnyPlan& plan, const StepChoice& choice) {
  return visit_plan(
      plan, [&](const Plan& one) { return step_job_of(scenario, one, choice); },
      [&](const RatioPlan& one) { return step_job_of(scenario, one, choice); },
      [&](const PlacementPlan& one) -> Expected<StepJob> {
        if (!choice.slow.empty())
          return refused("a rank is made slower in ratio plans alone, and this is a placement", kSlowHint);
        return step_job_of(scenario, one, choice);
      });
}

Expected<StepJob> step_job_of(const Scenario& scenario, const Plan& plan, const StepChoice& choice, int devices,
                              bool may_take_norms) {
  const Settings& settings = scenario.settings;
  if (plan.pipeline)
    if (auto reason = not_run_yet(*plan.pipeline); !reason.empty())
      return refused(std::move(reason), "choose a point or a method without that");
  if (plan.operators.empty() || plan.operators.size() != scenario.model->operators.size())
    return usage_error("the plan is not one of this model");
  const bool cpu = choice.backend == ProbeBackend::cpu;
  if (cpu && settings.precision == Precision::bf16)
    return refused("the CPU backend computes in fp32, the plan is in bf16", "search in precision fp32");
  if (settings.precision == Precision::fp8)
    return refused("the probe multiplies no 8-bit numbers", "search in precision bf16 or fp32");
  if (settings.optimizer_state != OptimizerState::fp32)
    return refused("the probe keeps optimizer state in fp32", "search with optimizer-state fp32");
  if (std::ranges::any_of(plan.operators, [](const PlanOperator& op) {
        return op.choice.gather == WeightGather::before_forward_bf16 && !op.parameters.empty();
      }))
    return refused("the plan gathers fp32 weights in bf16, and ranks gather them as they are read",
                   "search with gathers as-read");
  const Optimizer optimizer = settings.optimizer;
  const bool takes_norms =
      optimizer == Optimizer::lars || optimizer == Optimizer::lamb || optimizer == Optimizer::adafactor;
  if (takes_norms && !(cpu && may_take_norms))
    return refused(fmt::format("{} takes norms of whole weights, which CPU ranks of plans that split operators make, "
                               "and no others",
                               to_string(optimizer)),
                   "search with optimizer adam");
  if (cpu && choice.mode == StepMode::ranks && devices > choice.most_ranks)
    return refused(
        fmt::format("the plan is for {} devices, and at most {} CPU ranks are run here", devices, choice.most_ranks),
        fmt::format("search with --devices {}, or validate one device's part with --slice", choice.most_ranks));
  if (choice.slice_device < 0 || choice.slice_device >= devices)
    return usage_error(fmt::format("there is no device {} in a plan for {} devices", choice.slice_device, devices));
  StepJob job;
  job.plan = plan;
  job.plan.pipeline.reset();
  job.micro_batches = plan.micro_batches();
  const auto one = micro_batch_model(scenario.model, job.micro_batches);
  if (!one) return one.error();
  job.model = *one;
  job.backend = choice.backend;
  job.device = choice.device;
  job.cpu_kernels = choice.cpu_kernels;
  job.mode = choice.mode;
  job.slice_device = choice.slice_device;
  job.precision = settings.precision == Precision::bf16 ? ProbePrecision::bf16 : ProbePrecision::fp32;
  // What travels and is held does not depend on what the accounting chooses to count.
  const ParameterBytes bytes = parameter_bytes(settings, Accounting::full);
  job.floating_bytes = settings.precision == Precision::fp32 ? 4 : 2;
  job.weight_bytes = bytes.weight;
  job.gradient_bytes = bytes.gradient;
  job.optimizer_bytes = bytes.optimizer;
  job.optimizer = to_string(settings.optimizer);
  job.prove = choice.prove && choice.mode == StepMode::ranks;
  job.warm_up = choice.warm_up;
  job.steps = choice.steps;
  job.budget_s = choice.budget_s;
  job.seed = choice.seed;
  return job;
}

}  // namespace turnpoint
