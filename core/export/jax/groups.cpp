// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/groups.h"

#include <fmt/format.h>

namespace turnpoint::jax {

namespace {

/// The axes of a group's steps of one kind.
std::uint32_t axes_of_steps(const std::vector<ReshardStep>& steps, ReshardMove move) {
  std::uint32_t axes = 0;
  for (const ReshardStep& step : steps)
    if (step.move == move) axes |= step.axes;
  return axes;
}

}  // namespace

std::string WeightGroup::order(const Mesh& mesh) const {
  const std::string outer = axis_list(mesh, scattered), inner = axis_list(mesh, sliced);
  return outer.empty() || inner.empty() ? outer + inner : outer + ", " + inner;
}

Expected<std::vector<WeightGroup>> weight_groups(const Model& model, const Plan& plan, const TensorUses& uses) {
  std::vector<WeightGroup> groups;
  for (std::size_t i = 0; i < plan.operators.size(); ++i) {
    const PlanOperator& planned = plan.operators[i];
    const auto owned = parameter_groups(model, uses, OperatorId(i), planned.split, plan.mesh.count());
    if (owned.empty()) continue;
    if (planned.choice.offload)
      return usage_error(fmt::format("operator '{}' keeps its optimizer state at the host, for which there are no "
                                     "lines of JAX yet; search with --without offload",
                                     model.operators[OperatorId(i)].name),
                         model.name);
    if (owned.size() != planned.parameters.size())
      return bad_input("plan: the steps over the parameters of '" + model.operators[OperatorId(i)].name +
                           "' are not those of its groups",
                       model.name);
    for (std::size_t g = 0; g < owned.size(); ++g) {
      WeightGroup group;
      group.op = OperatorId(i);
      group.steps = &planned.parameters[g];
      group.inputs = owned[g].inputs;
      group.update = owned[g].shards(planned.choice) ? planned.choice.update : Update::replicated;
      group.rows = planned.choice.whole_rows && group.weights_cut();
      group.scattered = axes_of_steps(group.steps->sync, ReshardMove::reduce_scatter);
      group.sliced = axes_of_steps(group.steps->sync, ReshardMove::slice);
      group.reduced = axes_of_steps(group.steps->sync, ReshardMove::all_reduce);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

std::string write_groups(const Model& model, const Plan& plan, const std::vector<WeightGroup>& groups) {
  std::string text = "GROUPS = [\n";
  for (const WeightGroup& group : groups) {
    const Operator& op = model.operators[group.op];
    text += fmt::format("    Group(\n        {},\n        [\n", literal(op.name));
    for (const auto k : group.inputs) {
      const Tensor& tensor = model.tensors[op.inputs[k].tensor];
      const Layout layout =
          forward_layout(op, op.inputs[k], false, plan.operators[group.op.index].split, plan.mesh.count());
      text += fmt::format("            ({}, {}, {}),\n", literal(tensor.name), tuple_of(tensor.shape),
                          partition_spec(plan.mesh, layout, tensor.shape.size()));
    }
    text += "        ],\n";
    if (group.cut())
      text += fmt::format("        keeps=\"{}\",\n        cut=({}, {}),\n{}",
                          group.weights_cut() ? "weights cut" : "state cut",
                          axis_tuple(plan.mesh, axes_of(group.scattered)), axis_tuple(plan.mesh, axes_of(group.sliced)),
                          group.rows ? "        rows=True,\n" : "");
    text += "    ),\n";
  }
  return text + "]\n";
}

}  // namespace turnpoint::jax
