// SPDX-License-Identifier: Apache-2.0
#include "core/cost/tensor_use.h"

#include <algorithm>
#include <unordered_map>

namespace turnpoint {

namespace {

bool flows_between_operators(const Tensor& tensor) {
  return tensor.producer.valid() && (tensor.role == TensorRole::activation || tensor.role == TensorRole::input);
}

// Whether keeping `tensor` is asked for by any reader; a view passes the wish on to what it views. Operators are in
// topological order, so one backward sweep settles it.
IdVector<TensorId, char> kept_by_readers(const Model& model) {
  IdVector<TensorId, char> kept(model.tensors.size(), 0);
  for (std::size_t i = model.operators.size(); i-- > 0;) {
    const Operator& op = model.operators[OperatorId(i)];
    bool output_kept = false;
    for (const auto& access : op.outputs) output_kept = output_kept || kept[access.tensor];
    for (const auto& access : op.inputs)
      if (access.saved || (op.is_view() && output_kept)) kept[access.tensor] = 1;
  }
  return kept;
}

// Depth of each tensor in its chain of recomputable producers; 0: it is kept or is not kept at all.
void mark_recomputable(const Model& model, std::vector<TensorFlow>& flows) {
  IdVector<TensorId, int> depth(model.tensors.size(), 0);
  for (auto& flow : flows) {
    const Operator& op = model.operators[flow.producer];
    if (op.is_view()) {
      for (const auto& access : op.inputs) depth[flow.tensor] = std::max(depth[flow.tensor], depth[access.tensor]);
      continue;
    }
    if (op.kind == OperatorKind::input || op.outputs.size() != 1 || flow.producer_saves || !flow.any_consumer_saves())
      continue;
    int deepest = 0;
    bool inputs_kept = false;
    for (const auto& access : op.inputs) {
      const TensorRole role = model.tensors[access.tensor].role;
      if (role != TensorRole::activation && role != TensorRole::input) continue;
      inputs_kept = access.saved;
      if (!inputs_kept) break;
      deepest = std::max(deepest, depth[access.tensor]);
    }
    if (!inputs_kept || deepest >= kMaxRecomputeDepth) continue;
    flow.recomputable = true;
    depth[flow.tensor] = deepest + 1;
  }
}

}  // namespace

bool TensorFlow::any_consumer_saves() const {
  return std::find(consumer_saves.begin(), consumer_saves.end(), true) != consumer_saves.end();
}

TensorUses analyse_tensor_uses(const Model& model) {
  TensorUses uses;
  const auto kept = kept_by_readers(model);
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    for (std::uint32_t o = 0; o < op.outputs.size(); ++o) {
      const Access& access = op.outputs[o];
      const Tensor& tensor = model.tensors[access.tensor];
      if (!flows_between_operators(tensor)) continue;
      TensorFlow flow;
      flow.tensor = access.tensor;
      flow.producer = OperatorId(i);
      flow.output = o;
      flow.producer_is_view = op.is_view();
      flow.producer_saves = access.saved;
      flow.consumers = model.uses[access.tensor];
      for (const auto& use : flow.consumers) {
        const Operator& consumer = model.operators[use.op];
        bool output_kept = false;
        for (const auto& output : consumer.outputs) output_kept = output_kept || kept[output.tensor];
        flow.consumer_saves.push_back(consumer.inputs[use.input].saved || (consumer.is_view() && output_kept));
      }
      if (!flow.consumers.empty() || flow.producer_saves) uses.flows.push_back(std::move(flow));
    }
  }

  mark_recomputable(model, uses.flows);

  uses.owns_parameter.resize(model.operators.size());
  uses.parameter_reads.resize(model.operators.size());
  std::unordered_map<TensorId, ParameterTie> owners;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    uses.owns_parameter[i].assign(op.inputs.size(), false);
    uses.parameter_reads[i].assign(op.inputs.size(), 0);
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
      const Tensor& tensor = model.tensors[op.inputs[k].tensor];
      if (tensor.role != TensorRole::parameter) continue;
      const int reads = op.inputs[k].saved ? 2 : 1;
      const TensorId root = tensor.tied_to.valid() ? tensor.tied_to : op.inputs[k].tensor;
      const auto [it, first] = owners.try_emplace(root, ParameterTie{OperatorId(i), k, {}, 0});
      if (first || tensor.shape.size() < 2) {
        uses.owns_parameter[i][k] = true;
        uses.parameter_reads[i][k] = reads;
      } else if (it->second.owner != OperatorId(i)) {
        uses.ties.push_back({it->second.owner, it->second.owner_input, OperatorId(i), k});
        uses.parameter_reads[it->second.owner.index][it->second.owner_input] += reads;
      }
    }
  }
  return uses;
}

}  // namespace turnpoint
