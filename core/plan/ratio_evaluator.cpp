// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ratio_evaluator.h"

#include <algorithm>
#include <utility>

#include "core/model/model.h"
#include "core/plan/ratio_charges.h"

namespace turnpoint {

namespace {

/// What one part needs: times on its slowest device, memory of its fullest.
struct PartCosts {
  std::vector<CostBreakdown> operators;
  std::vector<std::int64_t> device_memory;   ///< in the plan's order
  std::vector<double> device_compute_s;      ///< likewise
  std::vector<RatioPlan::Exchange> flows;    ///< by TensorUses::flows
  std::vector<RatioPlan::Exchange> weights;  ///< by operator
};

class Evaluation {
 public:
  Evaluation(const Scenario& scenario, const RatioPlan& plan)
      : plan_(plan), model_(*scenario.model), charges_(scenario, plan) {}

  Expected<PartCosts> run() {
    if (auto checked = charges_.check_tree(); !checked) return checked.error();
    return part(plan_.whole(), plan_.cuts.empty() ? RatioPlan::kNoCut : 0, 0, loop_lengths(model_),
                plan_.reruns.empty() ? RatioCharges::AsLeft() : charges_.as_left_by_all());
  }

 private:
  Expected<PartCosts> part(std::uint32_t index, std::uint32_t cut_index, std::uint32_t first,
                           const LoopLengths& lengths, RatioCharges::AsLeft as_left) {
    const RatioPlan::Part& here = plan_.parts[index];
    if (here.devices == 1) {
      if (cut_index != RatioPlan::kNoCut) return bad_input("ratio plan: it cuts a single device", model_.name);
      return device(plan_.order[first], lengths, as_left);
    }
    const auto cut = charges_.cut_of(index, cut_index);
    if (!cut) return cut.error();
    auto halves = charges_.divide(**cut, lengths);
    if (!halves) return halves.error();
    const std::uint32_t second = first + plan_.parts[here.halves[0]].devices;
    charges_.cross(**cut, lengths, as_left);
    auto costs = part(here.halves[0], (*cut)->next[0], first, (*halves)[0], as_left);
    if (!costs) return costs;
    auto others = part(here.halves[1], (*cut)->next[1], second, (*halves)[1], std::move(as_left));
    if (!others) return others;
    unite(*costs, *others);
    const RatioLink link = charges_.link_between(first, second, second + plan_.parts[here.halves[1]].devices);
    for (const RatioExchange& exchange : charges_.exchanges(**cut, lengths, link)) pay(*costs, exchange);
    return costs;
  }

  // The slower device decides over an operator's time, the fuller one over memory.
  static void unite(PartCosts& one, const PartCosts& other) {
    const auto fullest = [](const PartCosts& of) {
      return *std::max_element(of.device_memory.begin(), of.device_memory.end());
    };
    const bool other_is_fuller = fullest(other) > fullest(one);
    for (std::size_t o = 0; o < one.operators.size(); ++o) {
      CostBreakdown &a = one.operators[o], b = other.operators[o];
      if (b.time_s() > a.time_s()) a.compute = b.compute, a.network = b.network;
      if (other_is_fuller) a.memory = b.memory;
    }
    for (std::size_t f = 0; f < one.flows.size(); ++f) unite(one.flows[f], other.flows[f]);
    for (std::size_t o = 0; o < one.weights.size(); ++o) unite(one.weights[o], other.weights[o]);
    one.device_memory.insert(one.device_memory.end(), other.device_memory.begin(), other.device_memory.end());
    one.device_compute_s.insert(one.device_compute_s.end(), other.device_compute_s.begin(),
                                other.device_compute_s.end());
  }

  // The slower half decides; all receive what they do.
  static void unite(RatioPlan::Exchange& one, const RatioPlan::Exchange& other) {
    const double all = one.all_bytes + other.all_bytes;
    if (other.seconds > one.seconds) one = other;
    one.all_bytes = all;
  }

  static void pay(PartCosts& costs, const RatioExchange& exchange) {
    using What = RatioExchange::What;
    CostBreakdown& operators = costs.operators[exchange.op.index];
    if (exchange.what == What::update_sums) {
      operators[ComputePart::update] += exchange.seconds;
      return;
    }
    operators[exchange.part] += exchange.seconds;
    const bool flows = exchange.what == What::tensor || exchange.what == What::gradient;
    RatioPlan::Exchange& sum = flows ? costs.flows[exchange.subject] : costs.weights[exchange.op.index];
    sum.bytes += exchange.bytes;
    sum.seconds += exchange.seconds;
    sum.all_bytes += exchange.both;
  }

  PartCosts device(std::uint32_t number, const LoopLengths& lengths, const RatioCharges::AsLeft& as_left) const {
    PartCosts costs;
    for (std::size_t o = 0; o < lengths.size(); ++o) {
      costs.operators.push_back(charges_.device_cost(OperatorId(o), number, lengths[o]));
      costs.weights.push_back({TensorId(), OperatorId(o)});
    }
    const auto& flows = charges_.uses().flows;
    for (std::uint32_t f = 0; f < flows.size(); ++f) {
      charges_.hold_flow(f, lengths, charges_.again(f, number, as_left), costs.operators[flows[f].producer.index]);
      costs.flows.push_back({flows[f].tensor, flows[f].producer});
    }
    std::int64_t bytes = 0;
    double seconds = 0;
    for (const CostBreakdown& cost : costs.operators) bytes += cost.memory_bytes(), seconds += cost.compute_s();
    costs.device_memory = {bytes};
    costs.device_compute_s = {seconds};
    return costs;
  }

  const RatioPlan& plan_;
  const Model& model_;
  const RatioCharges charges_;
};

}  // namespace

Expected<RatioPlan> evaluate_ratio_plan(const Scenario& scenario, RatioPlan plan) {
  auto costs = Evaluation(scenario, plan).run();
  if (!costs) return costs.error();
  plan.operators.clear();
  plan.cost = {};
  plan.exchanges = std::move(costs->flows);
  plan.weights = std::move(costs->weights);
  for (auto* list : {&plan.exchanges, &plan.weights})
    std::erase_if(*list, [](const auto& exchange) { return exchange.seconds == 0; });
  for (std::size_t o = 0; o < costs->operators.size(); ++o) {
    plan.operators.push_back({OperatorId(o), costs->operators[o]});
    plan.cost += costs->operators[o];
  }
  plan.device_memory.assign(plan.order.size(), 0);
  plan.device_compute_s.assign(plan.order.size(), 0);
  for (std::size_t d = 0; d < plan.order.size(); ++d) {
    plan.device_memory[plan.order[d]] = costs->device_memory[d];
    plan.device_compute_s[plan.order[d]] = costs->device_compute_s[d];
  }
  return plan;
}

}  // namespace turnpoint
