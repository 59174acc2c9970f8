// SPDX-License-Identifier: Apache-2.0
#include "core/plan/on_mesh.h"

namespace turnpoint {

namespace {

class AxisMap {
 public:
  explicit AxisMap(const std::vector<int>& from) : from_(from) {
    for (std::size_t a = 0; a < from_.size(); ++a)
      if (from_[a] < 0) added_ |= 1u << a;
  }
  std::uint32_t added() const { return added_; }
  std::uint32_t mask(std::uint32_t axes) const {
    std::uint32_t moved = 0;
    for (std::size_t a = 0; a < from_.size(); ++a)
      if (from_[a] >= 0 && (axes >> from_[a] & 1u)) moved |= 1u << a;
    return moved;
  }
  template <class Split>
  Split split(const Split& split) const {
    Split moved;
    for (std::size_t a = 0; a < from_.size(); ++a)
      if (from_[a] >= 0) moved.axis[a] = split.axis[std::size_t(from_[a])];
    return moved;
  }
  void steps(std::vector<ReshardStep>& steps) const {
    for (ReshardStep& step : steps) step.axes = mask(step.axes), step.result = split(step.result);
  }

 private:
  const std::vector<int>& from_;
  std::uint32_t added_ = 0;
};

}  // namespace

Plan on_mesh(Plan plan, const Mesh& mesh, const std::vector<int>& from) {
  const AxisMap map(from);
  for (PlanOperator& op : plan.operators) {
    op.split = map.split(op.split);
    op.choice.update_axes = map.mask(op.choice.update_axes);
    for (ParameterSteps& steps : op.parameters) {
      steps.group.partial = map.mask(steps.group.partial);
      steps.group.whole = map.mask(steps.group.whole) | map.added();
      for (const ParameterRole role : kParameterRoles) map.steps(steps.steps(role));
    }
  }
  for (PlanReshard& reshard : plan.reshards) {
    reshard.from = map.split(reshard.from), reshard.to = map.split(reshard.to);
    for (const ReshardRole role : kReshardRoles) map.steps(reshard.steps(role));
  }
  if (plan.pipeline)
    for (PlanPipeline::TiedSum& sum : plan.pipeline->tied)
      map.steps(sum.gather), map.steps(sum.sync), map.steps(sum.spread);
  plan.mesh = mesh;
  return plan;
}

}  // namespace turnpoint
