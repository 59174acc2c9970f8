// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/plan_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/cost/tensor_use.h"
#include "core/plan/evaluator.h"
#include "core/plan/reprice.h"
#include "core/plan_io/plan_names.h"

namespace turnpoint {

namespace {

/// Waiting is what is left of a long time: it has the rounding of that.
constexpr double kSameWaiting = 1e-6, kLeastWaiting_s = 1e-9;

/// One sentence where two costs differ; empty where they are the same.
std::string difference(const CostBreakdown& file, const CostBreakdown& now) {
  if (file.memory_bytes() != now.memory_bytes())
    return fmt::format("memory_bytes is {} and comes to {}", file.memory_bytes(), now.memory_bytes());
  if (!near(file.compute_s(), now.compute_s()))
    return fmt::format("compute_s is {} and comes to {}", file.compute_s(), now.compute_s());
  if (!near(file.network_s(), now.network_s()))
    return fmt::format("network_s is {} and comes to {}", file.network_s(), now.network_s());
  for (std::size_t i = 0; i < file.memory.size(); ++i)
    if (file.memory[i] != now.memory[i])
      return fmt::format("memory.{} is {} and comes to {}", memory_key(i), file.memory[i], now.memory[i]);
  for (std::size_t i = 0; i < file.compute.size(); ++i)
    if (!near(file.compute[i], now.compute[i]))
      return fmt::format("compute.{} is {} and comes to {}", compute_key(i), file.compute[i], now.compute[i]);
  for (std::size_t i = 0; i < file.network.size(); ++i)
    if (!near(file.network[i], now.network[i]))
      return fmt::format("network.{} is {} and comes to {}", network_key(i), file.network[i], now.network[i]);
  return {};
}

/// The same of what a schedule says of stages.
std::string difference(const PlanPipeline& file, const PlanPipeline& now) {
  using Tied = PlanPipeline::TiedSum;
  const auto same_times = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), near);
  };
  if (file.stage_memory_bytes != now.stage_memory_bytes)
    return fmt::format("stage_memory_bytes is {} and comes to {}", fmt::join(file.stage_memory_bytes, ", "),
                       fmt::join(now.stage_memory_bytes, ", "));
  if (std::abs(file.bubble_s - now.bubble_s) > kSameWaiting * std::max(file.bubble_s, now.bubble_s) + kLeastWaiting_s)
    return fmt::format("bubble_s is {} and comes to {}", file.bubble_s, now.bubble_s);
  if (!same_times(file.send_s, now.send_s))
    return fmt::format("send_s is {} and comes to {}", fmt::join(file.send_s, ", "), fmt::join(now.send_s, ", "));
  if (!same_times(file.send_back_s, now.send_back_s))
    return fmt::format("send_back_s is {} and comes to {}", fmt::join(file.send_back_s, ", "),
                       fmt::join(now.send_back_s, ", "));
  const auto same_steps = [](const std::vector<ReshardStep>& a, const std::vector<ReshardStep>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ReshardStep& one, const ReshardStep& other) {
      return one.move == other.move && one.axes == other.axes && near(one.time_s, other.time_s);
    });
  };
  const auto same = [&](const Tied& a, const Tied& b) {
    return a.owner == b.owner && a.user == b.user && a.owner_op == b.owner_op && a.user_op == b.user_op &&
           near(a.time_s, b.time_s) && a.parameter_bytes == b.parameter_bytes && a.gradient_bytes == b.gradient_bytes &&
           a.optimizer_bytes == b.optimizer_bytes && near(a.update_s, b.update_s) && same_steps(a.gather, b.gather) &&
           same_steps(a.sync, b.sync) && same_steps(a.spread, b.spread);
  };
  if (!std::equal(file.tied.begin(), file.tied.end(), now.tied.begin(), now.tied.end(), same))
    return "tied is not what weights of two stages exchange";
  return {};
}

}  // namespace

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-15; }

Expected<void> same_mesh(const Mesh& read, const Mesh& now, const std::string& where) {
  const bool same = std::equal(
      read.axes.begin(), read.axes.end(), now.axes.begin(), now.axes.end(),
      [](const MeshAxis& a, const MeshAxis& b) { return a.name == b.name && a.size == b.size && a.same_link(b); });
  if (same) return {};
  return bad_input("is not the mesh of the hardware that the result names", where + ": mesh");
}

void give_parts(const Scenario& scenario, Plan& plan, const std::vector<ReadCost>& totals) {
  const ReshardingModel resharding(
      plan.mesh, collectives_of(scenario),
      scenario.cluster->device.memory_bandwidth * scenario.cluster->device.memory_efficiency);
  Scenario one = scenario;
  if (plan.pipeline) {
    one.model = plan.pipeline->micro_batch;
    one.settings.batch = one.model->batch;
  }
  const TensorUses uses = analyse_tensor_uses(*one.model);
  const OperatorCostModel costs(one, uses, resharding, plan.micro_batches());
  for (PlanOperator& op : plan.operators) {
    const ReadCost& total = totals[op.op.index];
    if (total.parts) continue;
    op.cost = costs.cost(op.op, op.split, op.choice).breakdown;
    const double offload = op.cost[NetworkPart::offload];
    op.cost.network = {};
    op.cost[NetworkPart::offload] = offload;
    add_network(op.cost, all_steps(op.parameters));
    op.cost[MemoryPart::activations] += total.memory_bytes - op.cost.memory_bytes();
    const double rest = total.compute_s - op.cost.compute_s();
    if (std::abs(rest) > 1e-9 * total.compute_s) op.cost[ComputePart::recompute] += rest;
  }
}

Expected<void> check_costs(const Scenario& scenario, const Plan& plan, bool parts, const std::string& where) {
  const auto changed = [](Error error) {
    error.hint = "the plan, the model, the hardware or the program has changed since it was searched";
    return error;
  };
  const auto wrong = [&](const std::string& at, const std::string& what) {
    return changed(bad_input(what + " on the result's model and hardware", where + ": " + at));
  };
  const auto total = evaluate_plan(scenario, plan);
  if (!total) return changed(bad_input("cannot be carried out: " + total.error().message(), where));
  const auto now = repriced(scenario, plan);
  if (!now) return bad_input(now.error().what, where);
  for (std::size_t i = 0; i < plan.operators.size(); ++i)
    if (const auto differs = difference(plan.operators[i].cost, now->operators[i].cost); !differs.empty())
      return wrong(fmt::format("operators[{}] '{}'", i, scenario.model->operators[OperatorId(i)].name), differs);
  for (std::size_t i = 0; i < plan.reshards.size(); ++i)
    if (const auto differs = difference(plan.reshards[i].cost, now->reshards[i].cost); !differs.empty())
      return wrong(fmt::format("reshards[{}]", i), differs);
  if (plan.pipeline) {
    if (const auto differs = difference(*plan.pipeline, *now->pipeline); !differs.empty())
      return wrong("pipeline", differs);
  } else if (parts) {  // files without parts do not say which copies are second ones
    CostBreakdown sum;
    for (const auto& op : plan.operators) sum += op.cost;
    for (const auto& reshard : plan.reshards) sum += reshard.cost;
    if (const auto differs = difference(sum, plan.cost); !differs.empty())
      return wrong("cost", "the sum of operators and reshards differs: " + differs);
  }
  if (const auto differs = difference(plan.cost, *total); !differs.empty()) return wrong("cost", differs);
  return {};
}

}  // namespace turnpoint
