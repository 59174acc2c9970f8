// SPDX-License-Identifier: Apache-2.0
// turnpoint/plan@1 (resources/manual/formats.md).
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/plan_io/escape.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_names.h"

namespace turnpoint {

namespace {

using nlohmann::json;

json axis_names(const Mesh& mesh, std::uint32_t mask) {
  json names = json::array();
  for (int a = 0; a < mesh.count(); ++a)
    if (mask >> a & 1u) names.push_back(mesh.axes[a].name);
  return names;
}

json write_mesh(const Mesh& mesh) {
  json axes = json::array();
  for (const MeshAxis& axis : mesh.axes) {
    const char* const level = axis.pod_level > 0 ? "inter-pod" : axis.level == kInterNode ? "inter-node" : "intra-node";
    axes.push_back({{"axis", axis.name}, {"size", axis.size}, {"level", level}});
    if (axis.pod_level > 0) axes.back()["pod_level"] = axis.pod_level;
  }
  return axes;
}

// A list of axes per tensor dimension, and those that hold partial sums.
json write_layout(const Mesh& mesh, const Layout& layout, std::size_t dims) {
  json split = json::array();
  for (std::size_t d = 0; d < dims; ++d) split.push_back(axis_names(mesh, layout.mask(static_cast<std::int8_t>(d))));
  return {{"dims", std::move(split)}, {"partial", axis_names(mesh, layout.mask(Layout::kPartial))}};
}

// The group is the axes among whose devices the update is shared out; weights gathered for it travel in the scenario's
// precision, or in 16 bits where they are rounded for it.
json write_update(const Mesh& mesh, const MemoryChoice& choice, Precision precision) {
  if (choice.update == Update::replicated) return "replicated";
  const bool rounds = choice.gather == WeightGather::before_forward_bf16;
  json update = {{"group", axis_names(mesh, choice.update_axes)},
                 {"gather", precision == Precision::fp32 && !rounds ? "fp32" : "bf16"},
                 {"weights", choice.update == Update::sharded_weights ? "sharded" : "replicated"},
                 {"gradients", choice.update == Update::sharded_state ? "replicated" : "sharded"}};
  if (choice.whole_rows) update["whole_rows"] = true;
  if (choice.gathers_first()) update["gathered"] = "before-forward";
  if (rounds) update["rounded"] = true;
  if (choice.tiles) update["tiles"] = true;
  return update;
}

json write_configuration(const Mesh& mesh, const Operator& op, const Configuration& configuration,
                         const MemoryChoice& choice, Precision precision) {
  json split = json::object();
  const auto names = loop_names(op);
  std::uint32_t repeat = 0;
  for (int a = 0; a < mesh.count(); ++a) {
    const int l = configuration.axis[a];
    if (l == Configuration::kRepeat)
      repeat |= 1u << a;
    else
      split[names[static_cast<std::size_t>(l)]].push_back(mesh.axes[a].name);
  }
  return {{"split", std::move(split)},
          {"repeat", axis_names(mesh, repeat)},
          {"recompute", choice.recompute},
          {"offload", choice.offload},
          {"update", write_update(mesh, choice, precision)}};
}

json write_steps(const Mesh& mesh, const std::vector<ReshardStep>& steps, std::optional<std::size_t> dims) {
  json array = json::array();
  for (const ReshardStep& step : steps) {
    json object = {{"collective", to_string(step.move)},
                   {"axes", axis_names(mesh, step.axes)},
                   {"bytes", step.bytes},
                   {"time_s", step.time_s}};
    if (step.message_bytes > 0) object["message_bytes"] = step.message_bytes;
    if (step.move != ReshardMove::slice) object["algorithm"] = to_string(step.algorithm);
    if (dims) object["layout"] = write_layout(mesh, step.result, *dims);
    array.push_back(std::move(object));
  }
  return array;
}

// What is not nothing of it: a plan is then whole without its model.
json nonzero_parts(const CostBreakdown& cost) {
  json parts = json::object();
  for (std::size_t i = 0; i < cost.memory.size(); ++i)
    if (cost.memory[i] != 0) parts["memory"][memory_key(i)] = cost.memory[i];
  for (std::size_t i = 0; i < cost.compute.size(); ++i)
    if (cost.compute[i] != 0) parts["compute"][compute_key(i)] = cost.compute[i];
  for (std::size_t i = 0; i < cost.network.size(); ++i)
    if (cost.network[i] != 0) parts["network"][network_key(i)] = cost.network[i];
  return parts;
}

// Of the axes that a layout calls partial, those on which only gradients are, on their way back: an activation is
// partial where its producer left it so and nowhere else (resources/manual/costs.md, 2).
struct GradientPartial {
  std::uint32_t from = 0, to = 0;
};
GradientPartial gradient_partial(const Model& model, const std::set<TensorId>& shared, const PlanReshard& reshard) {
  const bool from_producer = model.tensors[reshard.tensor].role != TensorRole::parameter &&
                             (!reshard.consumer.valid() || !shared.count(reshard.tensor));
  return {from_producer ? 0 : reshard.from.mask(Layout::kPartial), reshard.to.mask(Layout::kPartial)};
}

json write_reshard(const Scenario& scenario, const Mesh& mesh, const std::set<TensorId>& shared,
                   const PlanReshard& reshard) {
  const Model& model = *scenario.model;
  const Tensor& tensor = model.tensors[reshard.tensor];
  const std::size_t dims = tensor.shape.size();
  const auto operator_name = [&](OperatorId id) {
    return id.valid() ? json(valid_utf8(model.operators[id].name)) : json();
  };
  const CostBreakdown& cost = reshard.cost;
  const GradientPartial gradient = gradient_partial(model, shared, reshard);
  json object = {
      {"tensor", valid_utf8(tensor.name)},
      {"producer", operator_name(reshard.producer)},
      {"consumer", operator_name(reshard.consumer)},
      {"from", write_layout(mesh, gradient.from ? reshard.from.without_partial() : reshard.from, dims)},
      {"to", write_layout(mesh, reshard.to.without_partial(), dims)},
      {"steps", write_steps(mesh, reshard.forward, dims)},
      {"backward_steps", write_steps(mesh, reshard.backward(), dims)},
      {"keep", reshard.keep == Keep::none || reshard.keep == Keep::again ? json() : json(to_string(reshard.keep))},
      {"memory_bytes", cost.memory_bytes()},
      {"time_s", cost.time_s()},
      {"parts", nonzero_parts(cost)}};
  if (reshard.keep == Keep::again) object["again"] = true;
  if (gradient.from | gradient.to)
    object["gradient_partial"] = {{"from", axis_names(mesh, gradient.from)}, {"to", axis_names(mesh, gradient.to)}};
  return object;
}

json write_pipeline(const Model& model, const Mesh& mesh, const PlanPipeline& pipeline) {
  json object = {{"stages", pipeline.stages},       {"micro_batches", pipeline.micro_batches},
                 {"recompute", pipeline.recompute}, {"selective", pipeline.selective},
                 {"bubble_s", pipeline.bubble_s},   {"stage_memory_bytes", pipeline.stage_memory_bytes},
                 {"send_s", pipeline.send_s},       {"send_back_s", pipeline.send_back_s}};
  if (pipeline.chunks > 1) object["chunks"] = pipeline.chunks;
  if (pipeline.forwards_first) object["forwards_first"] = true;
  if (pipeline.sums_behind) object["sums_behind"] = true;
  if (pipeline.beside_products) object["beside_products"] = true;
  for (const PlanPipeline::TiedSum& sum : pipeline.tied)
    object["tied"].push_back({{"owner", valid_utf8(model.operators[sum.owner_op].name)},
                              {"user", valid_utf8(model.operators[sum.user_op].name)},
                              {"owner_stage", sum.owner},
                              {"user_stage", sum.user},
                              {"time_s", sum.time_s},
                              {"parameter_bytes", sum.parameter_bytes},
                              {"gradient_bytes", sum.gradient_bytes},
                              {"optimizer_bytes", sum.optimizer_bytes},
                              {"weights", write_steps(mesh, sum.gather, std::nullopt)},
                              {"gradient_sync", write_steps(mesh, sum.sync, std::nullopt)},
                              {"update_s", sum.update_s},
                              {"new_weights", write_steps(mesh, sum.spread, std::nullopt)}});
  return object;
}

}  // namespace

json write_cost(const CostBreakdown& cost) {
  json object = {{"memory_bytes", cost.memory_bytes()},
                 {"time_s", cost.time_s()},
                 {"compute_s", cost.compute_s()},
                 {"network_s", cost.network_s()}};
  for (std::size_t i = 0; i < cost.memory.size(); ++i) object["memory"][memory_key(i)] = cost.memory[i];
  for (std::size_t i = 0; i < cost.compute.size(); ++i) object["compute"][compute_key(i)] = cost.compute[i];
  for (std::size_t i = 0; i < cost.network.size(); ++i) object["network"][network_key(i)] = cost.network[i];
  return object;
}

json write_plan(const Scenario& scenario, const Plan& plan) {
  const Model& model = *scenario.model;
  json configurations = json::array(), operators = json::array(), reshards = json::array();
  std::map<std::string, std::size_t> known;
  for (const PlanOperator& item : plan.operators) {
    const Operator& op = model.operators[item.op];
    json configuration = write_configuration(plan.mesh, op, item.split, item.choice, scenario.settings.precision);
    const auto [at, added] = known.emplace(configuration.dump(), configurations.size());
    if (added) configurations.push_back(std::move(configuration));
    json object = {{"name", valid_utf8(op.name)},
                   {"configuration", at->second},
                   {"memory_bytes", item.cost.memory_bytes()},
                   {"compute_s", item.cost.compute_s()},
                   {"network_s", item.cost.network_s()},
                   {"parts", nonzero_parts(item.cost)}};
    if (!op.detail.empty()) object["detail"] = valid_utf8(op.detail);
    if (!op.scope.empty()) object["scope"] = valid_utf8(op.scope);
    if (plan.pipeline) {
      object["stage"] = item.stage;
      if (plan.pipeline->chunks > 1) object["chunk"] = item.chunk;
      const auto& layers = plan.pipeline->layer_of;
      if (!layers.empty() && layers[item.op.index] >= 0) object["layer"] = layers[item.op.index];
    }
    if (item.follows.valid()) object["follows"] = item.follows.index;
    if (const auto steps = all_steps(item.parameters); !steps.empty())
      object["gradient_sync"] = write_steps(plan.mesh, steps, std::nullopt);
    operators.push_back(std::move(object));
  }
  std::set<TensorId> shared;
  for (const PlanReshard& reshard : plan.reshards)
    if (!reshard.consumer.valid()) shared.insert(reshard.tensor);
  for (const PlanReshard& reshard : plan.reshards)
    reshards.push_back(write_reshard(scenario, plan.mesh, shared, reshard));
  json document = {{"format", "turnpoint/plan@1"},      {"kind", "sharding"},
                   {"model", valid_utf8(model.name)},   {"hardware", valid_utf8(scenario.hardware)},
                   {"mesh", write_mesh(plan.mesh)},     {"configurations", std::move(configurations)},
                   {"operators", std::move(operators)}, {"reshards", std::move(reshards)},
                   {"cost", write_cost(plan.cost)}};
  if (plan.pipeline) document["pipeline"] = write_pipeline(model, plan.mesh, *plan.pipeline);
  return document;
}

}  // namespace turnpoint
