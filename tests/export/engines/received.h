// SPDX-License-Identifier: Apache-2.0
// Bytes that a rank receives in a step, as a plan has them and as a log of PyTorch's collectives does.
#pragma once

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/cost/parameters.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint::test {

inline std::string config_of(const std::string& family, int heads_of_keys, bool tied, int words = 512) {
  return fmt::format(R"({{"model_type": "{}", "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": {}, "vocab_size": {}, "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": {}}})",
                     family, heads_of_keys, words, tied);
}

/// Bytes that a rank receives, by kind and number of ranks.
using Received = std::map<std::pair<std::string, int>, double>;

inline std::string kind_of_move(ReshardMove move) {
  switch (move) {
    case ReshardMove::all_reduce: return "all_reduce";
    case ReshardMove::all_gather: return "all_gather";
    case ReshardMove::reduce_scatter: return "reduce_scatter";
    case ReshardMove::slice: return "slice";
    default: return "other";
  }
}

// What the loss sums of its rows is left out: DTensor does that inside an operator, where the log does not look.
inline Received received_by_plan(const Scenario& scenario, const Plan& plan) {
  const Model& model = plan.pipeline && plan.pipeline->micro_batch ? *plan.pipeline->micro_batch : *scenario.model;
  const auto of_loss = [&](OperatorId op) {
    return op.valid() && (model.operators[op].kind == OperatorKind::cross_entropy ||
                          model.operators[op].kind == OperatorKind::loss_statistics);
  };
  Received received;
  const auto add = [&](const ReshardStep& step, int times) {
    if (step.move == ReshardMove::slice) return;
    received[{kind_of_move(step.move), int(plan.mesh.size_of(step.axes))}] += times * step.bytes;
  };
  for (const PlanReshard& reshard : plan.reshards) {
    if (of_loss(reshard.producer) || of_loss(reshard.consumer)) continue;
    for (const ReshardStep& step : reshard.forward) add(step, 1);
    for (const ReshardStep& step : reshard.backward()) add(step, 1);
  }
  for (const PlanOperator& op : plan.operators) {
    const std::vector<ReshardStep> steps = all_steps(op.parameters);
    const std::vector<int> times = times_an_iteration(op.parameters, op.choice.update, 1);
    for (std::size_t k = 0; k < steps.size(); ++k) add(steps[k], times[k]);
  }
  return received;
}

inline Received received_by_log(const nlohmann::json& rows) {
  Received received;
  for (const auto& row : rows) {
    const int ranks = row[1];
    const double whole = row[2], part = (ranks - 1.0) / ranks;
    if (ranks > 1) received[{row[0], ranks}] += (row[0] == "all_reduce" ? 2 : 1) * part * whole;
  }
  return received;
}

inline std::string told(const Received& received) {
  std::string text;
  for (const auto& [key, bytes] : received) text += fmt::format("{} of {}: {:.0f}; ", key.first, key.second, bytes);
  return text;
}

}  // namespace turnpoint::test
