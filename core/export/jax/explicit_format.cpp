// SPDX-License-Identifier: Apache-2.0
// The plan itself as a program: a file for JAX in which every line is one operator or one collective of the plan.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/export/format.h"
#include "core/export/jax/groups.h"
#include "core/export/jax/kernels.h"
#include "core/export/jax/prelude.h"
#include "core/export/jax/step_writer.h"
#include "core/plan/charges.h"

namespace turnpoint {

namespace jax {
namespace {

std::string_view numpy_type(ElementType type) {
  switch (type) {
    case ElementType::i64: return "int64";
    case ElementType::i32: return "int32";
    case ElementType::i16: return "int16";
    case ElementType::i8: return "int8";
    case ElementType::u8: return "uint8";
    case ElementType::boolean: return "bool";
    default: return "float32";
  }
}

std::vector<DataArray> data_of(const Model& model, const Plan& plan) {
  std::vector<DataArray> data;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    if (op.kind != OperatorKind::input) continue;
    for (const Access& access : op.outputs)
      data.push_back({access.tensor, forward_layout(op, access, true, plan.operators[i].split, plan.mesh.count())});
  }
  return data;
}

/// Below which numbers of an integer tensor must lie: the rows of the smallest table, or the classes of the loss, that
/// they choose from.
std::int64_t bound_of(const Model& model, TensorId tensor) {
  std::int64_t bound = 0;
  const auto take = [&](std::int64_t rows) { bound = bound == 0 ? rows : std::min(bound, rows); };
  for (const auto& use : model.uses[tensor]) {
    const Operator& op = model.operators[use.op];
    const auto& first = model.tensors[op.inputs.front().tensor].shape;
    if (op.kind == OperatorKind::embedding && use.input == 1) take(first.front());
    if ((op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::loss_statistics) && use.input == 1)
      take(first.back());
    if (op.is_view())
      if (const std::int64_t behind = bound_of(model, op.outputs.front().tensor)) take(behind);
  }
  return bound;
}

std::string write_data(const Model& model, const Mesh& mesh, const std::vector<DataArray>& data) {
  std::string text = "# name, shape, type, layout, and for whole numbers what they are below\nDATA = [\n";
  for (const DataArray& array : data) {
    const Tensor& tensor = model.tensors[array.tensor];
    const std::int64_t bound = is_floating(tensor.type) ? 0 : std::max<std::int64_t>(2, bound_of(model, array.tensor));
    // The layout is made later: the table comes before JAX is there.
    text += fmt::format("    ({}, {}, \"{}\", lambda: {}, {}),\n", literal(tensor.name), tuple_of(tensor.shape),
                        numpy_type(tensor.type), partition_spec(mesh, array.layout, tensor.shape.size()), bound);
  }
  return text + "]\n";
}

std::string head_of(const Scenario& scenario, const Plan& plan) {
  const Settings& settings = scenario.settings;
  std::string text = "#!/usr/bin/env python3\n";
  text += fmt::format(
      "\"\"\"A plan as a program for JAX: {} on {}, {} samples a step, {}.\n\n"
      "Written by Turnpoint. Each line of step() is one operator or one collective of the plan on one device: "
      "forward,\n"
      "backward, the sums of gradients, the update. network() is the same network in one piece. {} of memory on a\n"
      "device and {:.3g} s a step are what the plan was predicted to need.\n\n"
      "    python3 FILE --cpu --compare    both on virtual devices, and how far they differ\n"
      "    python3 FILE                    one step on the devices that JAX sees, with drawn numbers\n"
      "\"\"\"\n\n",
      escaped(scenario.model->name), escaped(scenario.hardware), settings.batch, to_string(settings.precision),
      format_bytes(plan.cost.memory_bytes()), plan.cost.time_s());
  std::vector<std::string> axes;
  for (const MeshAxis& axis : plan.mesh.axes) axes.push_back(fmt::format("{}: {}", literal(axis.name), axis.size));
  if (axes.empty()) axes.emplace_back("\"one\": 1");
  text += fmt::format("MESH = {{{}}}  # axes of the devices, the outermost first\n", joined(axes));
  text += "LEARNING_RATE = 1e-3\n";
  if (std::any_of(scenario.model->results.begin(), scenario.model->results.end(),
                  [&](TensorId result) { return !scenario.model->tensors[result].shape.empty(); }))
    text += "# The network has results that are no loss: the program's loss weighs them (weighing()).\n";
  const auto taken = assumptions(*scenario.model);
  if (!taken.empty()) text += "\n# What the model file does not tell:\n";
  for (const auto& [line, words] : taken) text += fmt::format("{}  # {}\n", line, words);
  return text;
}

Expected<EngineFile> write_explicit(const Scenario& scenario, const Plan& plan) {
  const Model& model = *scenario.model;
  const Settings& settings = scenario.settings;
  const auto cannot = [&](const std::string& why) {
    return usage_error(fmt::format("this plan cannot be written for JAX: {}", why), model.name);
  };
  if (settings.precision != Precision::fp32)
    return cannot(fmt::format("precision {} has no lines yet, only fp32", to_string(settings.precision)));
  const std::string_view rule = update_rule(settings.optimizer);
  if (rule.empty()) return cannot(fmt::format("the optimizer {} has no lines yet", to_string(settings.optimizer)));
  if (settings.optimizer_state != OptimizerState::fp32) return cannot("optimizer states in 16 bits have no lines yet");
  if (const auto legal = charges_of(scenario, plan); !legal) return legal.error();
  const auto ways = Ways::of(model, plan);
  if (!ways) return ways.error();
  const auto groups = weight_groups(model, plan, (*ways)->uses);
  if (!groups) return groups.error();
  const auto data = data_of(model, plan);
  StepWriter writer(scenario, plan, **ways, *groups, data);
  const auto step = writer.step();
  if (!step) return step.error();
  const auto network = writer.network();
  if (!network) return network.error();
  std::string text = head_of(scenario, plan) + "\n" + write_data(model, plan.mesh, data) + "\n";
  text += first_lines();
  text += functions();
  text += rule;
  text +=
      "\n\n# --- the plan "
      "-------------------------------------------------------------------------------------------------------"
      "\n\n" +
      write_groups(model, plan, *groups);
  text += "\n\ndef step(weights, first, second, data, rate, number):\n" + *step;
  text += "\n\ndef network(weights, data, number):\n" + *network;
  text += last_lines();
  const bool here = scenario.cluster->nodes == 1;  // one process sees the devices of one node
  return EngineFile{std::move(text), {}, std::string("python3 plan-program.py") + (here ? "" : " --cpu --compare")};
}

}  // namespace
}  // namespace jax

ExportFormat jax_explicit_format() {
  return for_engine({.key = "jax:explicit",
                     .subject = "Plan",
                     .name = "JAX program",
                     .file = "plan-program.py",
                     .text = "The plan itself as a program for JAX: every line one operator or one collective",
                     .pipelines = false},
                    &jax::write_explicit);
}

}  // namespace turnpoint
