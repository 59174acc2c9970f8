// SPDX-License-Identifier: Apache-2.0
#include "core/probe/plan_record.h"

#include <fmt/format.h>
#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <span>

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr Keep kKeeps[] = {Keep::none, Keep::before, Keep::after, Keep::both, Keep::again};
constexpr ReshardMove kMoves[] = {ReshardMove::all_gather, ReshardMove::slice,          ReshardMove::all_to_all,
                                  ReshardMove::all_reduce, ReshardMove::reduce_scatter, ReshardMove::permute};
constexpr WeightGather kGathers[] = {WeightGather::after_update, WeightGather::before_forward,
                                     WeightGather::before_forward_bf16};
constexpr Update kUpdates[] = {Update::replicated, Update::sharded_state, Update::sharded, Update::sharded_weights};
constexpr std::size_t kMostSteps = 1000, kMostReshards = 10'000'000;
constexpr double kMostSeconds = 1e30, kMostPlannedBytes = 1e24;

/// Axes of a layout or configuration: one entry per axis of the mesh.
json write_axes(const Mesh& mesh, const std::array<std::int8_t, kMaxAxes>& axis) {
  json list = json::array();
  for (int a = 0; a < mesh.count(); ++a) list.push_back(axis[static_cast<std::size_t>(a)]);
  return list;
}

// A job is of no pipeline, and of operators and reshardings one by one: no bubble.
constexpr int kListedNetworkParts = int(NetworkPart::bubble);

json write_parts(const CostBreakdown& cost) {
  return {{"memory", cost.memory},
          {"compute", cost.compute},
          {"network", std::span(cost.network).first<kListedNetworkParts>()}};
}

json write_steps(const Mesh& mesh, const std::vector<ReshardStep>& steps) {
  json list = json::array();
  for (const auto& step : steps)
    list.push_back({{"move", to_string(step.move)},
                    {"axes", step.axes},
                    {"bytes", step.bytes},
                    {"time_s", step.time_s},
                    {"result", write_axes(mesh, step.result.axis)}});
  return list;
}

std::int64_t number(OperatorId id) { return id.valid() ? std::int64_t(id.index) : -1; }

template <class Enum, std::size_t N>
Enum named(JsonFields& fields, const char* key, const Enum (&values)[N]) {
  const std::string text = fields.text(key);
  for (const auto value : values)
    if (text == to_string(value)) return value;
  fields.fail(key, fmt::format("'{}' is not known", text));
  return values[0];
}

class Reader {
 public:
  Reader(JsonFields& fields, const Model& model) : fields_(fields), model_(model) {}

  Plan read() {
    Plan plan;
    fields_.each("mesh", [&](JsonFields& one, std::size_t index) {
      if (index >= static_cast<std::size_t>(kMaxAxes)) return one.fail("axis", "more axes than a mesh has");
      MeshAxis axis;
      axis.name = one.text("axis");
      axis.size = static_cast<int>(one.integer("size", 1, 4096));
      axis.level = static_cast<int>(one.integer("level", kInterNode, kIntraNode));
      axis.pod_level = static_cast<int>(one.integer("pod_level", 0, std::int64_t(kMaxPodLevels), 0));
      plan.mesh.axes.push_back(std::move(axis));
    });
    double devices = 1;
    for (const auto& axis : plan.mesh.axes) devices *= axis.size;
    if (devices > 1 << 20) fields_.fail("mesh", "has more than a million devices");
    axes_ = plan.mesh.count();
    fields_.each("operators", [&](JsonFields& one, std::size_t index) {
      if (index >= model_.operators.size()) return one.fail("split", "is of an operator that the model does not have");
      plan.operators.push_back(read_operator(one, OperatorId(index)));
    });
    if (!fields_.error() && plan.operators.size() != model_.operators.size())
      fields_.fail("operators",
                   fmt::format("{} of {} operators are planned", plan.operators.size(), model_.operators.size()));
    fields_.each("reshards", [&](JsonFields& one, std::size_t index) {
      if (index >= kMostReshards) return one.fail("tensor", "is one of too many");
      plan.reshards.push_back(read_reshard(one));
    });
    if (fields_.has("cost")) plan.cost = read_cost(fields_);
    return plan;
  }

 private:
  std::array<std::int8_t, kMaxAxes> read_axes(JsonFields& fields, const char* key, std::int64_t least,
                                              std::int64_t below) {
    std::array<std::int8_t, kMaxAxes> axis = Layout().axis;
    const auto found = fields.json().find(key);
    if (found == fields.json().end() || !found->is_array() || found->size() != static_cast<std::size_t>(axes_)) {
      fields.fail(key, fmt::format("must have an entry for each of {} axes", axes_));
      return axis;
    }
    for (std::size_t a = 0; a < found->size(); ++a) {
      const auto& value = (*found)[a];
      if (!value.is_number_integer() || value.get<double>() < double(least) || value.get<double>() >= double(below)) {
        fields.fail(key, fmt::format("holds an entry outside {} to {}", least, below - 1));
        break;
      }
      axis[a] = value.get<std::int8_t>();
    }
    return axis;
  }
  Layout read_layout(JsonFields& fields, const char* key, std::size_t dims) {
    Layout layout;
    layout.axis = read_axes(fields, key, Layout::kPartial, static_cast<std::int64_t>(dims));
    return layout;
  }

  CostBreakdown read_cost(JsonFields& parent) {
    CostBreakdown cost;
    JsonFields fields = parent.object("cost");
    const auto take = [&](const char* key, auto values) {
      const auto found = fields.json().find(key);
      const bool listed = found != fields.json().end() && found->is_array() && found->size() == values.size();
      if (!listed || std::any_of(found->begin(), found->end(), [](const json& v) {
            return !v.is_number() || !(v.get<double>() >= 0) || v.get<double>() > 1e18;
          }))
        return fields.fail(key, fmt::format("must list {} numbers from 0", values.size()));
      std::copy(found->begin(), found->end(), values.begin());
    };
    take("memory", std::span(cost.memory));
    take("compute", std::span(cost.compute));
    take("network", std::span(cost.network).first<kListedNetworkParts>());
    return cost;
  }

  std::vector<ReshardStep> read_steps(JsonFields& fields, const char* key, std::size_t dims) {
    std::vector<ReshardStep> steps;
    fields.each(key, [&](JsonFields& one, std::size_t index) {
      if (index >= kMostSteps) return one.fail("move", "is one of too many");
      ReshardStep step;
      step.move = named(one, "move", kMoves);
      step.axes = static_cast<std::uint32_t>(one.integer("axes", 0, (std::int64_t(1) << axes_) - 1));
      step.bytes = one.number("bytes", 0, kMostPlannedBytes);
      step.time_s = one.number("time_s", 0, kMostSeconds);
      step.result = read_layout(one, "result", dims);
      steps.push_back(step);
    });
    return steps;
  }

  PlanOperator read_operator(JsonFields& fields, OperatorId id) {
    PlanOperator op;
    op.op = id;
    op.split.axis =
        read_axes(fields, "split", Configuration::kRepeat, static_cast<std::int64_t>(model_.operators[id].dims.size()));
    op.choice.update = named(fields, "update", kUpdates);
    op.choice.update_axes =
        static_cast<std::uint32_t>(fields.integer("update_axes", 0, (std::int64_t(1) << axes_) - 1));
    op.choice.whole_rows = fields.flag("whole_rows", false);
    op.choice.tiles = fields.flag("tiles", false);
    if (fields.has("gathered")) op.choice.gather = named(fields, "gathered", kGathers);
    op.choice.offload = fields.flag("offload", false);
    op.choice.recompute = fields.flag("recompute", false);
    op.cost = read_cost(fields);
    // The groups are left to whoever carries the plan out, who does not trust it.
    op.parameters = in_groups({}, read_steps(fields, "gradient_sync", kMaxAxes), op.choice);
    return op;
  }

  PlanReshard read_reshard(JsonFields& fields) {
    PlanReshard reshard;
    const auto id = [&](const char* key, std::int64_t least) {
      return fields.integer(key, least, static_cast<std::int64_t>(model_.operators.size()) - 1);
    };
    const auto tensor = fields.integer("tensor", 0, static_cast<std::int64_t>(model_.tensors.size()) - 1);
    const auto producer = id("producer", -1), consumer = id("consumer", -1);
    if (fields.error()) return reshard;
    reshard.tensor = TensorId(static_cast<std::size_t>(tensor));
    if (producer >= 0) reshard.producer = OperatorId(static_cast<std::size_t>(producer));
    if (consumer >= 0) reshard.consumer = OperatorId(static_cast<std::size_t>(consumer));
    const std::size_t dims = model_.tensors[reshard.tensor].shape.size();
    reshard.from = read_layout(fields, "from", dims);
    reshard.to = read_layout(fields, "to", dims);
    reshard.forward = read_steps(fields, "forward", dims);
    std::vector<ReshardStep> backward = read_steps(fields, "backward", dims);
    reshard.keep = named(fields, "keep", kKeeps);
    reshard.set_backward(std::move(backward));
    reshard.cost = read_cost(fields);
    return reshard;
  }

  JsonFields& fields_;
  const Model& model_;
  int axes_ = 0;
};

}  // namespace

nlohmann::json write_plan_record(const Plan& plan) {
  assert(!plan.pipeline);
  json mesh = json::array(), operators = json::array(), reshards = json::array();
  for (const auto& axis : plan.mesh.axes)
    mesh.push_back({{"axis", axis.name}, {"size", axis.size}, {"level", axis.level}, {"pod_level", axis.pod_level}});
  for (const auto& op : plan.operators)
    operators.push_back({{"split", write_axes(plan.mesh, op.split.axis)},
                         {"update", to_string(op.choice.update)},
                         {"update_axes", op.choice.update_axes},
                         {"whole_rows", op.choice.whole_rows},
                         {"tiles", op.choice.tiles},
                         {"gathered", to_string(op.choice.gather)},
                         {"offload", op.choice.offload},
                         {"recompute", op.choice.recompute},
                         {"cost", write_parts(op.cost)},
                         {"gradient_sync", write_steps(plan.mesh, all_steps(op.parameters))}});
  for (const auto& reshard : plan.reshards)
    reshards.push_back({{"tensor", reshard.tensor.index},
                        {"producer", number(reshard.producer)},
                        {"consumer", number(reshard.consumer)},
                        {"from", write_axes(plan.mesh, reshard.from.axis)},
                        {"to", write_axes(plan.mesh, reshard.to.axis)},
                        {"forward", write_steps(plan.mesh, reshard.forward)},
                        {"backward", write_steps(plan.mesh, reshard.backward())},
                        {"keep", to_string(reshard.keep)},
                        {"cost", write_parts(reshard.cost)}});
  return {{"mesh", std::move(mesh)},
          {"operators", std::move(operators)},
          {"reshards", std::move(reshards)},
          {"cost", write_parts(plan.cost)}};
}

Plan read_plan_record(JsonFields fields, const Model& model) { return Reader(fields, model).read(); }

}  // namespace turnpoint
