// SPDX-License-Identifier: Apache-2.0
// What must wait for what in the schedule of a plan, read from model, plan and times alone: nothing of how plans are
// lowered is used but the names of the items.
#pragma once

#include <QString>
#include <algorithm>

#include "core/schedule/plan_lowering.h"

namespace turnpoint::test {

/// Start and end of what there is of one kind for an operator, over all its items.
struct Span {
  double start = 1e300, end = -1e300;
  int items = 0;
};

/// What waits for what, read from the times alone: nothing of how the plan was lowered is used.
class PlanRules {
 public:
  PlanRules(const Scenario& scenario, const Plan& plan, const LoweredPlan& lowered, const LaneTimes& times)
      : model_(*scenario.model), plan_(plan), uses_(analyse_tensor_uses(model_)), lowered_(lowered), times_(times) {}

  QString fault() const {
    for (const PlanOperator& op : plan_.operators)
      if (const QString what = fault_of(op); !what.isEmpty())
        return what + " " + QString::fromStdString(model_.operators[op.op].name);
    std::size_t steps = 0, found = 0;
    for (const PlanReshard& reshard : plan_.reshards) steps += reshard.forward.size() + reshard.backward().size();
    for (const PlanTask& task : lowered_.tasks)
      found += task.kind == PlanTaskKind::reshard || task.kind == PlanTaskKind::reshard_back ||
               task.kind == PlanTaskKind::reshard_again;
    return steps == found ? QString() : QString("%1 steps of reshardings became %2").arg(steps).arg(found);
  }

 private:
  Span span(PlanTaskKind kind, OperatorId op, TensorId tensor = {}) const {
    Span span;
    for (std::size_t i = 0; i < lowered_.tasks.size(); ++i) {
      const PlanTask& task = lowered_.tasks[i];
      if (task.kind != kind || task.op != op || (tensor.valid() && task.tensor != tensor)) continue;
      span.start = std::min(span.start, times_.start_s[i]);
      span.end = std::max(span.end, times_.end_s[i]);
      ++span.items;
    }
    return span;
  }

  /// Whether some item of this kind of `op` waits at once for some item of `other`.
  bool waits_for(PlanTaskKind kind, OperatorId op, OperatorId other) const {
    const LaneItems& items = lowered_.items;
    for (std::size_t i = 0; i < items.size(); ++i)
      for (std::uint32_t k = items.wait_begin[i]; k < items.wait_begin[i + 1]; ++k)
        if (lowered_.tasks[i].kind == kind && lowered_.tasks[i].op == op &&
            lowered_.tasks[items.wait_for[k]].op == other)
          return true;
    return false;
  }

  QString fault_of(const PlanOperator& planned) const {
    const Operator& op = model_.operators[planned.op];
    CostBreakdown cost = planned.cost;
    const Span forward = span(PlanTaskKind::forward, planned.op), backward = span(PlanTaskKind::backward, planned.op);
    const Span again = span(PlanTaskKind::again, planned.op), update = span(PlanTaskKind::update, planned.op);
    const Span sync = span(PlanTaskKind::gradients, planned.op), weights = span(PlanTaskKind::weights, planned.op);
    const Span gathered = span(PlanTaskKind::new_weights, planned.op);
    if (forward.items != 1 || backward.items > 1 || (cost[ComputePart::backward] > 0) > backward.items)
      return "not run once:";
    if (again.items != (cost[ComputePart::recompute] > 0)) return "not run again as often as planned:";
    if (weights.items + sync.items + gathered.items != int(all_steps(planned.parameters).size())) return "steps lost:";
    for (const Access& in : op.inputs) {
      const OperatorId producer = model_.tensors[in.tensor].producer;
      if (producer.valid() && span(PlanTaskKind::forward, producer).end > forward.start)
        return "runs before its input:";
      const Span own = span(PlanTaskKind::reshard, planned.op, in.tensor);
      if (own.items > 0 && own.end > forward.start) return "runs before its input is resharded:";
    }
    if (weights.items > 0 && weights.start > forward.start) return "runs before its weights are there:";
    if (backward.items == 1) {
      if (backward.start < forward.end) return "goes back before it went forward:";
      for (const Access& out : op.outputs)
        for (const auto& use : model_.uses[out.tensor]) {
          const Span consumer = span(PlanTaskKind::backward, use.op);
          if (consumer.items == 1 && model_.tensors[out.tensor].requires_gradient && consumer.end > backward.start)
            return "goes back before its consumer:";
        }
      if (again.items == 1 && again.end > backward.start && uses_.run_again[planned.op.index] == RunAgain::never)
        return "goes back before it ran again:";
      if (sync.items > 0 && sync.start < backward.end) return "sums gradients that are not there:";
    }
    if (again.items == 1 && again.start < forward.end) return "runs again too early:";
    if (update.items == 1 && (update.start < sync.end || update.start < backward.end)) return "updates too early:";
    for (const ParameterTie& tie : uses_.ties) {
      if (tie.owner != planned.op) continue;
      const TensorId table = op.inputs[tie.owner_input].tensor;
      const Span user = span(PlanTaskKind::backward, tie.user),
                 moved = span(PlanTaskKind::reshard_back, tie.user, table);
      if (std::max(user.end, moved.end) > (sync.items > 0 ? sync.start : update.start))
        return "sums without its tied users:";
      if (sync.items > 0 && !waits_for(PlanTaskKind::gradients, planned.op, tie.user)) return "forgets its tied users:";
    }
    // What runs again from an input that nobody keeps waits until that one was made again.
    for (const Access& in : op.inputs) {
      const OperatorId producer = model_.tensors[in.tensor].producer;
      if (again.items == 0 || uses_.run_again[planned.op.index] != RunAgain::carried || !producer.valid()) continue;
      if (span(PlanTaskKind::again, producer).items > 0 && !waits_for(PlanTaskKind::again, planned.op, producer) &&
          span(PlanTaskKind::reshard_again, planned.op, in.tensor).items == 0)
        return "runs again from nothing:";
    }
    for (std::size_t i = 0; i < lowered_.tasks.size() && update.items == 1; ++i)
      if (lowered_.tasks[i].kind == PlanTaskKind::backward && times_.end_s[i] > update.start)
        return "updates before backward has ended:";
    if (gathered.items > 0 && gathered.start < update.end) return "gathers old weights:";
    return {};
  }

  const Model& model_;
  const Plan& plan_;
  const TensorUses uses_;
  const LoweredPlan& lowered_;
  const LaneTimes& times_;
};

}  // namespace turnpoint::test
