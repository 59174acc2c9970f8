// SPDX-License-Identifier: Apache-2.0
// Plans of typed groups of devices and what is read from them, for tests of context and expert parallelism.
#pragma once

#include "core/import/huggingface/huggingface.h"
#include "core/plan/evaluator.h"
#include "search/scenarios.h"

namespace turnpoint::test {

inline ScenarioPtr bf16_on(const std::string& model, std::int64_t batch, const std::string& hardware) {
  return scenario_on(builtin(model, batch), hardware, [](Settings& s) { s.precision = Precision::bf16; });
}

/// Two layers of 4 heads, of which 2 have keys, and of 8 experts, 2 for each of 16 tokens: 4 slots an expert.
inline ModelPtr small_mixture(std::int64_t batch) {
  const auto source = parse_huggingface_config(R"({"model_type": "mixtral", "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 16, "num_local_experts": 8,
    "num_experts_per_tok": 2, "vocab_size": 32, "max_position_embeddings": 64})",
                                               "config.json");
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({batch, 16});
  if (!model) qFatal("%s", model.error().message().c_str());
  return *model;
}

inline Plan plan_of(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return (*result)->plans->sharding(0);
}

inline OperatorId named(const Model& model, const std::string& name) {
  for (std::size_t i = 0; i < model.operators.size(); ++i)
    if (model.operators[OperatorId(i)].name == name) return OperatorId(i);
  qFatal("no operator %s", name.c_str());
}

inline int loop_of(const Operator& op, DimName name) {
  for (std::size_t l = 0; l < op.dims.size(); ++l)
    if (op.dims[l].name == name) return int(l);
  return -1;
}

/// Axes that split this loop; 0 where there is none.
inline std::uint32_t axes_of(const PlanOperator& op, int loop) {
  std::uint32_t axes = 0;
  for (int a = 0; a < kMaxAxes; ++a)
    if (loop >= 0 && op.split.axis[std::size_t(a)] == loop) axes |= 1u << a;
  return axes;
}

/// What a device receives in these steps, kind by kind; slices are free and left out.
inline std::map<ReshardMove, double> received(const std::vector<ReshardStep>& steps) {
  std::map<ReshardMove, double> bytes;
  for (const ReshardStep& step : steps)
    if (step.move != ReshardMove::slice) bytes[step.move] += step.bytes;
  return bytes;
}

/// Whether the point is what the evaluator makes of its plan.
inline bool evaluates(const ScenarioPtr& scenario, const Result& result) {
  const auto cost = evaluate_plan(*scenario, result.plans->sharding(0));
  if (!cost) qWarning("%s", cost.error().message().c_str());
  const ResultPoint& point = result.points.front();
  return cost && cost->memory_bytes() == point.memory_bytes && close(cost->time_s(), point.time_s) &&
         close(point.compute_s + point.network_s, point.time_s);
}

}  // namespace turnpoint::test
