// SPDX-License-Identifier: Apache-2.0
// A machine whose times follow a law that we know and that the cost model does not: what "measuring" a plan on it says.
#pragma once

#include <functional>
#include <random>

#include "core/cost/operator_cost.h"
#include "core/cost/side_kernels.h"
#include "core/model/operator_kind.h"
#include "core/plan/reprice.h"
#include "core/probe/step_job.h"
#include "core/scenario/scenario.h"
#include "core/validation/compare.h"

namespace turnpoint::test {

struct SyntheticMachine {
  /// Seconds of one phase ("forward", "backward", "update") of a kind of operator.
  std::function<double(const std::string& kind, const std::string& phase, const PhaseWork& work)> compute;
  std::function<double(Collective kind, const DeviceGroup& group, double bytes)> exchange;
  int micro_batches = 1;  ///< scenario and plan are of one; backward adds its gradients to those before
  double sums = 1;        ///< how many times as long as predicted that takes
  double noise = 0;       ///< times vary by this share up and down, from the seed
  std::uint64_t seed = 1;

  StepMeasurement run(const Scenario& scenario, const Plan& plan, StepMode mode = StepMode::ranks) {
    std::mt19937_64 random(seed++);
    double step_s = 0;
    const auto spread = [&](double seconds) {
      const double off = noise * (2 * double(random() % 1000001) / 1e6 - 1);
      seconds *= 1 + off;
      step_s += seconds;
      return Spread{seconds * 0.98, seconds, seconds * 1.02, seconds * 1.04, 10};
    };
    StepMeasurement made;
    made.backend = "cpu";
    made.mode = mode;
    made.ranks = made.cores = mode == StepMode::ranks ? plan.mesh.devices() : 1;
    const Model& model = *scenario.model;
    const ReshardingModel resharding(plan.mesh, CollectiveModel(*scenario.cluster, {}), 1);
    const TensorUses uses = analyse_tensor_uses(model);
    const OperatorCostModel costs(scenario, uses, resharding, micro_batches);
    for (const PlanOperator& planned : plan.operators) {
      const Operator& op = model.operators[planned.op];
      CostBreakdown cost = planned.cost;
      const auto add = [&](StepPhase phase, ComputePart part, const char* name) {
        if (cost[part] <= 0) return;
        const bool update = phase == StepPhase::update;
        const PhaseWork work = update ? PhaseWork{0, costs.update_bytes(planned.op, planned.split, planned.choice)}
                                      : costs.work(op, planned.split, phase == StepPhase::backward);
        const SideKernels beside =
            update ? SideKernels{} : side_kernels(scenario, op, planned.split, plan.mesh, phase == StepPhase::backward);
        const DeviceType& device = scenario.cluster->device;
        const double side_s =
            beside.bytes / (device.memory_bandwidth * device.memory_efficiency) + beside.kernels * device.launch_s;
        const double summing =
            phase == StepPhase::backward ? sums * costs.accumulation_s(planned.op, planned.split, planned.choice) : 0;
        made.phases.push_back({planned.op, phase,
                               spread(compute(update ? kUpdateKind : fitted_kind(model, op), name, work) +
                                      costs.beside_s(work) + side_s + summing)});
      };
      add(StepPhase::forward, ComputePart::forward, "forward");
      add(StepPhase::backward, ComputePart::backward, "backward");
      add(StepPhase::recompute, ComputePart::recompute, "forward");
      add(StepPhase::update, ComputePart::update, "update");
    }
    const auto exchanges = [&](const std::vector<ReshardStep>& steps, std::int32_t reshard, OperatorId op,
                               bool backward) {
      for (std::size_t s = 0; s < steps.size(); ++s) {
        const auto asked = collective_of(plan.mesh, steps[s]);
        if (!asked) continue;
        MeasuredExchange item{reshard,        op, backward, std::int32_t(s), steps[s].move, steps[s].bytes,
                              steps[s].bytes, {}};
        if (mode == StepMode::ranks) item.time = spread(exchange(asked->kind, asked->group, asked->bytes));
        made.planned_bytes += item.planned_bytes;
        made.received_bytes += mode == StepMode::ranks ? item.received_bytes : 0;
        made.exchanges.push_back(std::move(item));
      }
    };
    for (std::size_t r = 0; r < plan.reshards.size(); ++r) {
      exchanges(plan.reshards[r].forward, std::int32_t(r), plan.reshards[r].producer, false);
      exchanges(plan.reshards[r].backward(), std::int32_t(r), plan.reshards[r].producer, true);
    }
    for (const PlanOperator& planned : plan.operators) exchanges(all_steps(planned.parameters), -1, planned.op, true);
    made.step = {step_s * 0.98, step_s, step_s * 1.02, step_s * 1.04, 10};
    CostBreakdown cost = plan.cost;
    made.memory = {cost[MemoryPart::parameters],
                   cost[MemoryPart::gradients],
                   cost[MemoryPart::optimizer],
                   cost[MemoryPart::activations] + cost[MemoryPart::copies],
                   0,
                   cost.memory_bytes()};
    made.memory.peak = serial_peak(scenario, plan).value();
    return made;
  }
};

/// The machine that the scenario's cluster describes: every time is the predicted one.
inline SyntheticMachine as_predicted(const Scenario& scenario) {
  const auto& device = scenario.cluster->device;
  SyntheticMachine machine;
  const double flops = device.peak_fp32 * device.flop_efficiency,
               bytes = device.memory_bandwidth * device.memory_efficiency, launch = device.launch_s,
               product_launch = device.product_launch();
  machine.compute = [=](const std::string& kind, const std::string&, const PhaseWork& work) {
    const auto known = operator_kind(kind.substr(0, kind.find(' ')));  // "matmul of activations", "convolution 3x3"
    const bool product = known && record_of(*known).products;
    return std::max(work.flop / flops, work.bytes / bytes) + (product ? product_launch : launch);
  };
  const auto model = std::make_shared<CollectiveModel>(*scenario.cluster, scenario.settings.factors);
  machine.exchange = [model](Collective kind, const DeviceGroup& group, double size) {
    return model->time(kind, group, size).value;
  };
  return machine;
}

}  // namespace turnpoint::test
