// SPDX-License-Identifier: Apache-2.0
// A plan with everything looked up, in flat arrays: which resharding brings each input to its reader, which resharding
// restores a producer's copy, how many bytes everything has on one device, what each group of parameters holds. Whoever
// carries a plan on (schedules, exports) starts from here; the evaluator and the probe do not, since they check it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/operator_cost.h"
#include "core/cost/tensor_use.h"
#include "core/model/task_graph.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// What does not depend on the plan. An access is one input of one operator.
struct PlanFacts {
  explicit PlanFacts(const Model& of);

  const Model& model;
  TensorUses uses;
  std::vector<std::uint32_t> first_flow;    ///< by operator, one more: its outputs' flows
  std::vector<std::uint32_t> first_access;  ///< by operator, one more
  std::vector<std::uint32_t> flow_of;       ///< by access; kNone: no activation or data
  std::vector<std::uint32_t> tie_of;        ///< by access: a parameter owned elsewhere; kNone
  std::vector<char> has_gradient;           ///< by operator: its backward runs

  std::uint32_t access(OperatorId op, std::uint32_t input) const { return first_access[op.index] + input; }
  std::size_t accesses() const { return flow_of.size(); }
};

class ResolvedPlan {
 public:
  ResolvedPlan(const Scenario& scenario, const PlanFacts& facts, const Plan& plan);
  Expected<void> run();

  /// What one group of an operator's parameters holds on a device.
  struct Group {
    const ParameterSteps* steps = nullptr;  ///< the plan's
    std::int64_t shards = 1, shard_elements = 0;
    std::int64_t full_gradient_bytes = 0, shard_gradient_bytes = 0;
    std::vector<std::int64_t> read_elements;  ///< read once or more often, twice or more often, ...
  };
  std::vector<Group> groups;
  std::vector<std::int64_t> persistent;       ///< by role: parameters and optimizer state
  std::vector<std::int64_t> produced_bytes;   ///< by flow, in its producer's layout
  std::vector<std::int64_t> read_bytes;       ///< by access, in the layout its reader wants
  std::vector<std::int64_t> internal_bytes;   ///< by operator: saved inside it
  std::vector<std::int64_t> result_bytes;     ///< by operator: outputs of the whole network that no operator reads
  std::vector<std::uint32_t> reshard_of;      ///< by access; kNone
  std::vector<std::uint32_t> shared_reshard;  ///< by flow: the resharding without consumer; kNone
  std::vector<std::uint32_t> restored_by;     ///< by flow: the resharding that brings the producer's copy back; kNone
  std::vector<std::uint32_t> group_of_tie;    ///< by tie: the owner's group

  std::uint32_t stages() const { return stages_; }
  std::int32_t micro_batches() const { return micro_batches_; }
  std::uint32_t role_of(OperatorId op) const {
    return stages_ == 1 ? 0 : std::uint32_t(plan_.operators[op.index].stage);
  }
  /// Runs of layers in the order in which micro-batches pass through them: run r is on stage r mod stages().
  std::uint32_t runs() const { return stages_ * chunks_; }
  std::uint32_t run_of(OperatorId op) const {
    return runs() == 1 ? 0 : std::uint32_t(plan_.pipeline->run_of(plan_.operators[op.index]));
  }
  int layer(OperatorId op) const { return layers_ ? plan_.pipeline->layer_of[op.index] : -1; }
  const std::vector<PlanPipeline::TiedSum>& tied_sums() const;
  /// An index into these: the copy that this access reads, whose owner is on another stage; kNone.
  std::uint32_t tied_sum_of(OperatorId op, std::uint32_t access) const;

  bool works(OperatorId op) const;
  bool stored(std::uint32_t flow) const { return facts_.uses.flows[flow].shared() || shared_reshard[flow] != kNone; }
  /// Backward finds the tensor of this flow by running its producer again.
  bool runs_again(std::uint32_t flow) const;
  bool internals_again(OperatorId op) const;
  /// Backward finds what this resharding brought by starting from its source again.
  bool from_source(std::uint32_t reshard) const;
  std::pair<std::uint32_t, std::uint32_t> groups_of(OperatorId op) const {
    return {first_group_[op.index], first_group_[op.index + 1]};
  }
  std::int64_t gathered_bytes(const Group& group, std::size_t gather) const {
    return group.read_elements[gather] * real_.weight;
  }
  std::int64_t bytes_in(const Layout& layout, TensorId tensor) const;
  /// The gradient of a tied weight as its user makes it.
  std::int64_t tied_gradient_bytes(std::uint32_t access) const {
    return read_bytes[access] / real_.weight * bytes_.gradient;
  }
  /// Optimizer state that comes from the host for the update.
  std::int64_t visiting_bytes(OperatorId op) const;

 private:
  Expected<void> check() const;
  Expected<void> match_reshards();
  Expected<void> match_restored();
  Expected<void> group_parameters(OperatorId id);
  /// The steps of a group are those that its layout and its operator's memory choice ask for.
  Expected<void> check_steps(OperatorId id, const Group& group) const;
  void measure_tensors();
  Error bad(OperatorId op, const char* what) const;

  const PlanFacts& facts_;
  const Model& model_;
  const Plan& plan_;
  Settings settings_;
  ParameterBytes bytes_, real_;
  std::uint32_t stages_ = 1, chunks_ = 1;
  std::int32_t micro_batches_ = 1;
  bool layers_ = false;
  std::vector<std::uint32_t> first_group_;
  std::vector<std::vector<int>> reads_;  ///< with stages: TensorUses::parameter_reads but for copies on other stages
};

}  // namespace turnpoint
