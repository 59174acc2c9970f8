// SPDX-License-Identifier: Apache-2.0
#include "core/cost/selective_operators.h"

#include <algorithm>

#include "core/cost/tensor_use.h"

namespace turnpoint {

namespace {

/// Whether what it reads without keeping it is there when it runs again: kept by its producer, or made again.
bool finds_its_input(const Model& model, const TensorUses& uses, const std::vector<char>& again, OperatorId id) {
  if (uses.run_again[id.index] != RunAgain::carried) return true;
  const Operator& op = model.operators[id];
  return std::all_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
    const OperatorId producer = model.tensors[access.tensor].producer;
    if (access.saved || !producer.valid() || again[producer.index]) return true;
    const auto& outputs = model.operators[producer].outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const Access& output) { return output.tensor == access.tensor && output.saved; });
  });
}

}  // namespace

std::vector<char> selective_operators(const Model& model, const TransformerRoles& roles) {
  const TensorUses uses = analyse_tensor_uses(model);
  std::vector<char> again(model.operators.size(), 0);
  int layer = -1, products = 0;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const OperatorId id(i);
    const Operator& op = model.operators[id];
    if (roles.layer_of[i] != layer) layer = roles.layer_of[i], products = 0;
    if (layer < 0 || layer >= roles.layers || op.kind == OperatorKind::attention) continue;
    if (is_weighted_product(model, op) && ++products % 2 == 1) continue;
    again[i] = finds_its_input(model, uses, again, id);
  }
  return again;
}

}  // namespace turnpoint
