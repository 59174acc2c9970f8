// SPDX-License-Identifier: Apache-2.0
// JAX: annotations for the user's own model. A Python file with the mesh, tables of how parameters, their optimizer
// states, data and tensors lie on it, and functions that apply them. Every pattern says how many parameters it must
// match, and the file stops with the first that does not.
#include <fmt/format.h>
#include <algorithm>

#include "core/base/text.h"
#include "core/export/engines/python_text.h"
#include "core/export/format.h"
#include "core/export/jax/annotated.h"
#include "core/export/jax/annotation_functions.h"
#include "core/export/jax/name_rows.h"
#include "core/export/jax/python.h"
#include "core/plan/charges.h"

namespace turnpoint {

namespace jax {
namespace {

std::string quoted_tuple(const std::vector<std::string>& words) {
  std::vector<std::string> literals;
  for (const std::string& word : words) literals.push_back(literal(word));
  return fmt::format("({}{})", joined(literals), words.size() == 1 ? "," : "");
}

std::string parameter_table(const Mesh& mesh, const std::vector<AnnotatedParameter>& parameters) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const AnnotatedParameter& parameter : parameters) {
    std::string value = fmt::format("{}, {}", tuple_of(parameter.shape), partition_spec(mesh, parameter.read));
    if (parameter.zero > 0) value += fmt::format(", {}, {}", partition_spec(mesh, parameter.state), parameter.zero);
    rows.emplace_back(parameter.name, std::move(value));
  }
  std::string text = "PARAMETERS = [\n";
  for (const NameRow& row : name_rows(rows))
    text += fmt::format("    Held({}, {}, {}),\n", literal(row.pattern), row.names, row.value);
  return text + "]\n";
}

std::string tensor_table(const Mesh& mesh, const std::vector<AnnotatedTensor>& tensors) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const AnnotatedTensor& tensor : tensors) {
    std::vector<std::string> layouts;
    for (const DimensionAxes& layout : tensor.layouts) layouts.push_back(partition_spec(mesh, layout));
    rows.emplace_back(tensor.name, fmt::format("{}, {}, ({}{})", quoted_tuple(tensor.dims), tuple_of(tensor.shape),
                                               joined(layouts), layouts.size() == 1 ? "," : ""));
  }
  std::string text = "TENSORS = [\n";
  for (const NameRow& row : name_rows(rows))
    text += fmt::format("    Kept({}, {}, {}),\n", literal(row.pattern), row.names, row.value);
  return text + "]\n";
}

std::string data_table(const Mesh& mesh, const std::vector<AnnotatedTensor>& data) {
  std::string text = "DATA = {\n";
  for (const AnnotatedTensor& array : data)
    text += fmt::format("    {}: {},  # {}\n", literal(array.name), partition_spec(mesh, array.layouts.front()),
                        tuple_of(array.shape));
  return text + "}\n";
}

std::string rule_table(const Mesh& mesh, const LogicalRules& found, bool shares_states) {
  std::string text = python_comment(
      "Rules of logical axes for your model's own names of dimensions, as flax.linen.logical_axis_rules() and "
      "MaxText's "
      "logical_axis_rules take them.");
  if (!found.none.empty())
    return text + python_comment(fmt::format("There are none: {}.", found.none)) + "RULES = None\n";
  if (shares_states)
    text +=
        python_comment("They lay out weights and tensors; optimizer state lies otherwise, as state_shardings() says.");
  text += "RULES = [\n";
  for (const auto& [name, axes] : found.rules)
    text += fmt::format("    ({}, {}),\n", literal(name), axes.empty() ? "None" : axis_tuple(mesh, axes));
  return text + "]\n";
}

constexpr const char* kUse = R"(#
#     def loss(parameters, data):              # your model, its tensors named to constrain()
#         parameters = read(parameters)
#         ...
#     def step(parameters, state, data):
#         value, gradients = jax.value_and_grad(loss)(parameters, data)
#         updates, state = optimizer.update(cut(summed(gradients)), state, cut(parameters))
#         return value, cut(optax.apply_updates(cut(parameters), updates)), state
#     lies = parameter_shardings(parameters), state_shardings(state, parameters)
#     jax.jit(step, in_shardings=(*lies, data_sharding(...)), out_shardings=(None, *lies))
)";

Expected<EngineFile> write_annotations(const Scenario& scenario, const Plan& plan) {
  if (const auto legal = charges_of(scenario, plan); !legal) return legal.error();
  const auto made = Annotated::of(scenario, plan);
  if (!made) return made.error();
  std::string text =
      python_comment(fmt::format("{} on {}, {} devices, batch {}. By plain sums {} and {}.", scenario.model->name,
                                 scenario.hardware, scenario.cluster->devices(), scenario.settings.batch,
                                 format_bytes(plan.cost.memory_bytes()), format_seconds(plan.cost.time_s())));
  for (const std::string& note : made->notes) text += python_comment("Note: " + note + ".");
  text += python_comment("Names are those of your model's parameters and tensors, by pattern. Use:");
  text += kUse;
  text += annotation_records();
  std::vector<std::string> axes;
  for (const MeshAxis& axis : plan.mesh.axes) axes.push_back(fmt::format("{}: {}", literal(axis.name), axis.size));
  if (axes.empty()) axes.emplace_back("\"one\": 1");
  text += fmt::format("MESH = {{{}}}  # axes of the devices, the outermost first\n", joined(axes));
  text += parameter_table(plan.mesh, made->parameters);
  text += data_table(plan.mesh, made->data);
  text += tensor_table(plan.mesh, made->tensors);
  const bool shares = std::ranges::any_of(made->parameters, [](const auto& p) { return p.zero == 1 || p.zero == 2; });
  text += rule_table(plan.mesh, logical_rules(*made, plan.mesh), shares);
  text += annotation_functions();
  const int nodes = scenario.cluster->nodes;  // a process each, which jax.distributed.initialize() joins
  return EngineFile{std::move(text), made->notes,
                    (nodes > 1 ? fmt::format("srun --nodes {} --ntasks-per-node 1 ", nodes) : "") + "python3 TRAIN.py"};
}

}  // namespace
}  // namespace jax

ExportFormat jax_format() {
  return for_engine(
      {.key = "jax",
       .subject = "Plan",
       .name = "JAX",
       .file = "sharding.py",
       .text = "Annotations of your model's parameters and tensors for JAX, of plans that PartitionSpec can say",
       .pipelines = false},
      &jax::write_annotations);
}

}  // namespace turnpoint
