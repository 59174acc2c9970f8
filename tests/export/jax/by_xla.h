// SPDX-License-Identifier: Apache-2.0
// What XLA makes on processors of a plan that it is told by annotations: the plan's collectives, less or more where it
// works otherwise for a reason that is known by name. Beside them what a compiled program has.
#pragma once

#include <set>

#include "core/export/jax/ways.h"
#include "export/jax/collectives.h"

namespace turnpoint::test {

/// Bytes that a device receives in collectives of one kind among the same groups.
struct KindBytes {
  double plan = 0, by_xla = 0, theirs = 0;
  int plan_count = 0, their_count = 0;
  std::set<std::string> reasons;  ///< why `by_xla` is not `plan`

  bool is_close(double one) const { return std::abs(one - theirs) <= 0.01 * std::max(one, theirs); }
};
using KindKey = std::pair<std::string, std::vector<std::vector<int>>>;
using CollectiveTable = std::map<KindKey, KindBytes>;

class ByXla {
 public:
  ByXla(const Scenario& scenario, const Plan& plan) : model_(*scenario.model), plan_(plan) {
    for (const Listed& listed : planned(scenario, plan)) {
      auto& row = table_[{listed.kind, listed.groups}];
      row.plan += listed.bytes;
      ++row.plan_count;
    }
    for (const PlanOperator& op : plan.operators)
      for (const ParameterSteps& steps : op.parameters) add_parameters(op, steps);
    const auto ways = jax::Ways::of(model_, plan);
    if (!ways) qFatal("%s", ways.error().message().c_str());
    for (const jax::Tie& tie : (*ways)->ties) add_tie(tie);
    for (const PlanReshard& reshard : plan.reshards) add_reshard(reshard, **ways);
    add_loss();
  }

  CollectiveTable beside(const std::vector<Listed>& found) && {
    for (const Listed& listed : found) {
      auto& row = table_[{listed.kind, listed.groups}];
      row.theirs += listed.bytes;
      ++row.their_count;
    }
    std::erase_if(table_, [](const auto& entry) {
      return entry.second.plan == 0 && entry.second.by_xla == 0 && entry.second.theirs == 0;
    });
    return std::move(table_);
  }

 private:
  void add(const char* kind, std::uint32_t axes, double bytes, const std::string& reason = {}) {
    if (bytes == 0 || plan_.mesh.size_of(axes) == 1) return;
    auto& row = table_[{kind, groups_along(plan_.mesh, axes)}];
    row.by_xla += bytes;
    if (!reason.empty()) row.reasons.insert(reason);
  }
  void reason(const ReshardStep& step, const std::string& why) {
    if (step.move == ReshardMove::slice) return;
    table_[{kind_of(step), groups_along(plan_.mesh, step.axes)}].reasons.insert(why);
  }
  static std::string kind_of(const ReshardStep& step) {
    std::string kind = to_string(step.move);
    std::replace(kind.begin(), kind.end(), '_', '-');
    return kind;
  }

  // A reduce-scatter is an all-reduce and a slice on processors: every device receives twice as much.
  void add_step(const ReshardStep& step, int times = 1, const std::string& why = {}) {
    if (step.move == ReshardMove::slice) return;
    if (step.move == ReshardMove::reduce_scatter) {
      reason(step, kScatters);
      add("all-reduce", step.axes, 2 * times * step.bytes, kScatters);
    } else {
      add(kind_of(step).c_str(), step.axes, times * step.bytes, why);
    }
  }

  // Rows are summed over samples, then over positions: where both are split, among two kinds of groups.
  void add_sum(const PlanOperator& op, std::uint32_t axes, double bytes, const std::string& reason) {
    std::map<int, std::uint32_t> by_loop;
    for (int a = 0; a < plan_.mesh.count(); ++a)
      if (axes >> a & 1u) by_loop[op.split.axis[std::size_t(a)]] |= 1u << a;
    for (const auto& [loop, group] : by_loop) {
      const double ways = double(plan_.mesh.size_of(group));
      add("all-reduce", group, 2 * bytes * (ways - 1) / ways, by_loop.size() > 1 ? kLoops : reason);
    }
  }

  void add_parameters(const PlanOperator& op, const ParameterSteps& steps) {
    for (const ReshardStep& step : steps.sync) {
      if (step.move == ReshardMove::slice) continue;
      const double ways = double(plan_.mesh.size_of(step.axes));
      const bool scatters = step.move == ReshardMove::reduce_scatter;
      const double bytes = (scatters ? 1 : 0.5) * step.bytes * ways / (ways - 1);
      add_sum(op, step.axes, bytes, scatters ? kScatters : "");
      if (scatters || table_[{"all-reduce", groups_along(plan_.mesh, step.axes)}].by_xla == 0)
        reason(step, scatters ? kScatters : kLoops);
    }
    for (const ReshardStep& step : steps.spread) add_step(step);
    for (std::size_t read = 0; read < steps.gather.size(); ++read)
      if (read == 0)
        add_step(steps.gather[read]);
      else
        reason(steps.gather[read], "weights stay gathered from forward to backward");
  }

  // Gradients of a weight with two uses are summed before they meet.
  void add_tie(const jax::Tie& tie) {
    const PlanOperator& owner = plan_.operators[tie.use->owner.index];
    const Operator& op = model_.operators[tie.use->owner];
    const Access& access = op.inputs[tie.use->owner_input];
    const Layout lies = forward_layout(op, access, false, owner.split, plan_.mesh.count());
    const std::uint32_t partial = parameter_group(op, access, owner.split, plan_.mesh.count()).partial;
    const double bytes = 4.0 * double(local_elements(plan_.mesh, lies, model_.tensors[access.tensor].shape));
    add_sum(owner, partial, bytes, "gradients of a weight with two uses are summed apart");
  }

  void add_reshard(const PlanReshard& reshard, const jax::Ways& ways) {
    if (is_statistics(reshard.producer)) return;  // a loss split by words: add_loss()
    for (const ReshardStep& step : reshard.forward) add_step(step);
    for (const auto* again : {&reshard.repeated, &reshard.restored})
      for (const ReshardStep& step : *again) reason(step, "tensors stay as they were moved in forward");
    int readers = 0;
    for (const jax::Flow& flow : ways.flows)
      if (flow.use->tensor == reshard.tensor && flow.shared && flow.shared->reshard == &reshard)
        for (const jax::Way& way : flow.ways) readers += way.meets && way.read.has_partial();
    const int times = std::max(1, readers);
    for (const ReshardStep& step : reshard.gradient)
      add_step(step, times, times > 1 ? "gradients of one tensor from several products are summed apart" : "");
  }

  bool is_statistics(OperatorId id) const {
    return id.valid() && model_.operators[id].kind == OperatorKind::loss_statistics;
  }

  // Of a loss split by words, the statistics of every row are summed one by one, where the plan gathers them of all
  // blocks; the loss itself is one number.
  void add_loss() {
    for (const PlanReshard& reshard : plan_.reshards)
      if (is_statistics(reshard.producer))
        for (const ReshardStep& step : reshard.forward) {
          const std::string why = "a loss split by words sums its rows' statistics one by one";
          reason(step, why);
          // The plan gathers three numbers of each row and block of words, of which a sum over rows needs one twice.
          const double blocks = double(model_.tensors[reshard.tensor].shape.end()[-2]);
          add("all-reduce", step.axes, step.bytes / (3 * blocks) * 2 * kSums, why);
        }
    for (const PlanOperator& op : plan_.operators) {
      const Operator& described = model_.operators[op.op];
      if (described.kind == OperatorKind::input || described.outputs.empty()) continue;
      const TensorId result = described.outputs.front().tensor;
      if (std::find(model_.results.begin(), model_.results.end(), result) == model_.results.end()) continue;
      std::uint32_t split = 0;
      for (int a = 0; a < plan_.mesh.count(); ++a)
        if (op.split.axis[std::size_t(a)] >= 0) split |= 1u << a;
      add_sum(op, split, 4, "the loss is summed, too");
    }
  }

  static constexpr double kSums = 4;  ///< of log_softmax() and its derivative
  static constexpr const char* kLoops = "sums over samples and over positions one after the other";
  static constexpr const char* kScatters = "an all-reduce and a slice for a reduce-scatter";
  const Model& model_;
  const Plan& plan_;
  CollectiveTable table_;
};

/// A row as people read it.
inline std::string words_of(const KindKey& key, const KindBytes& row) {
  return fmt::format("{} of {}: plan {} x {:.0f}, by XLA {:.0f}, compiled {} x {:.0f}{}{}", key.first,
                     key.second.empty() ? 0 : key.second.front().size(), row.plan_count, row.plan, row.by_xla,
                     row.their_count, row.theirs, row.reasons.empty() ? "" : ": ", fmt::join(row.reasons, "; "));
}

}  // namespace turnpoint::test
