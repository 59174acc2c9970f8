// SPDX-License-Identifier: Apache-2.0
#include "core/cost/tensor_use.h"

#include <algorithm>
#include <unordered_map>

#include "core/cost/messages.h"

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

bool reads_weights_in_backward(const Model& model, const Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
    return access.saved && model.tensors[access.tensor].role == TensorRole::parameter;
  });
}

class RunAgainAnalysis {
 public:
  RunAgainAnalysis(const Model& model, const std::vector<TensorFlow>& flows)
      : model_(model),
        flow_of_(model.operators.size(), nullptr),
        depth_(model.tensors.size(), 0),
        result_(model.operators.size(), RunAgain::never) {
    for (const auto& flow : flows) flow_of_[flow.producer.index] = &flow;
    for (std::size_t i = 0; i < model.operators.size(); ++i)
      for (const auto& access : model.operators[OperatorId(i)].inputs)
        if (is_parameter(access)) owner_.try_emplace(root_of(access), OperatorId(i));
  }

  std::vector<RunAgain> run() {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) settle(OperatorId(i));
    // Whose output nobody keeps need not run again unless its one reader does.
    for (std::size_t i = model_.operators.size(); i-- > 0;) {
      if (result_[i] == RunAgain::never || kept(*flow_of_[i])) continue;
      const auto& consumers = flow_of_[i]->consumers;
      if (consumers.size() != 1 || result_[consumers.front().op.index] != RunAgain::carried)
        result_[i] = RunAgain::never;
    }
    return std::move(result_);
  }

 private:
  static bool kept(const TensorFlow& flow) { return flow.producer_saves || flow.any_consumer_saves(); }

  bool is_parameter(const Access& access) const { return model_.tensors[access.tensor].role == TensorRole::parameter; }
  TensorId root_of(const Access& access) const {
    const TensorId tied = model_.tensors[access.tensor].tied_to;
    return tied.valid() ? tied : access.tensor;
  }

  void settle(OperatorId id) {
    const Operator& op = model_.operators[id];
    const TensorFlow* flow = flow_of_[id.index];
    if (op.outputs.empty() || !flow) return;
    int deepest = 0;
    for (const auto& access : op.inputs) deepest = std::max(deepest, depth_[access.tensor]);
    if (op.is_view()) depth_[flow->tensor] = deepest;
    if (op.is_view() || op.kind == OperatorKind::input || op.outputs.size() != 1) return;
    // Its probabilities are made again by a choice of its own, which says nothing of its output.
    if (op.kind == OperatorKind::loss_statistics) return;
    const RunAgain may = with_weights(id, judge(op, *flow));
    const int depth = deepest + kept(*flow);
    if (may == RunAgain::never || depth > kMaxRecomputeDepth) return;
    result_[id.index] = may;
    depth_[flow->tensor] = depth;
  }

  // What running again asks of weights that backward does not read.
  RunAgain with_weights(OperatorId id, RunAgain may) const {
    const Operator& op = model_.operators[id];
    if (may == RunAgain::never || reads_weights_in_backward(model_, op)) return may;
    bool any = false;
    for (const auto& access : op.inputs) {
      if (!is_parameter(access)) continue;
      if (model_.tensors[access.tensor].shape.size() >= 2 && owner_.at(root_of(access)) != id) return RunAgain::never;
      any = true;
    }
    return any ? RunAgain::carried : may;
  }

  RunAgain judge(const Operator& op, const TensorFlow& flow) const {
    const Access* lost = nullptr;
    int activations = 0;
    for (const auto& access : op.inputs) {
      const TensorRole role = model_.tensors[access.tensor].role;
      if (role != TensorRole::activation && role != TensorRole::input) continue;
      ++activations;
      if (!access.saved) lost = &access;
    }
    if (activations == 0) return RunAgain::never;
    if (!lost) return flow.producer_saves ? RunAgain::never : RunAgain::folded;
    const OperatorId producer = model_.tensors[lost->tensor].producer;
    if (activations != 1 || !producer.valid()) return RunAgain::never;
    const TensorFlow* from = flow_of_[producer.index];
    const bool direct = from && from->tensor == lost->tensor && !from->shared() && !from->producer_is_view;
    const bool there = direct && (from->producer_saves || result_[producer.index] != RunAgain::never);
    return there ? RunAgain::carried : RunAgain::never;
  }

  const Model& model_;
  std::unordered_map<TensorId, OperatorId> owner_;  ///< of a parameter: its first user
  std::vector<const TensorFlow*> flow_of_;          ///< [operator]: its (last) output's
  IdVector<TensorId, int> depth_;                   ///< tensors computed again, one from the other, up to this one
  std::vector<RunAgain> result_;
};

}  // namespace

bool TensorFlow::any_consumer_saves() const {
  return std::find(consumer_saves.begin(), consumer_saves.end(), true) != consumer_saves.end();
}

bool counted_with_operator(const Model& model, const Operator& op, const Access& output) {
  return op.is_view() || model.uses[output.tensor].empty() || !flows_between_operators(model.tensors[output.tensor]);
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

  uses.run_again = RunAgainAnalysis(model, uses.flows).run();

  uses.owns_parameter.resize(model.operators.size());
  uses.parameter_reads.resize(model.operators.size());
  uses.rerun_reads.resize(model.operators.size());
  uses.products_alone.resize(model.operators.size());
  std::unordered_map<TensorId, ParameterTie> owners;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    uses.owns_parameter[i].assign(op.inputs.size(), false);
    uses.parameter_reads[i].assign(op.inputs.size(), 0);
    uses.rerun_reads[i].assign(op.inputs.size(), 0);
    uses.products_alone[i].assign(op.inputs.size(), false);
    const bool along = reads_weights_in_backward(model, op),
               product = op.kind == OperatorKind::matmul || op.kind == OperatorKind::convolution;
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
      const Tensor& tensor = model.tensors[op.inputs[k].tensor];
      if (tensor.role != TensorRole::parameter) continue;
      const bool shared = tensor.shape.size() >= 2;  // vectors are everybody's own
      const int reads = op.inputs[k].saved ? 2 : 1;
      const TensorId root = tensor.tied_to.valid() ? tensor.tied_to : op.inputs[k].tensor;
      const auto [it, first] = owners.try_emplace(root, ParameterTie{OperatorId(i), k, {}, 0});
      if (first || !shared) {
        uses.owns_parameter[i][k] = true;
        uses.products_alone[i][k] = product && k < 2;
        uses.parameter_reads[i][k] = along ? 2 : reads;
        uses.rerun_reads[i][k] = !along && uses.run_again[i] == RunAgain::carried;
      } else if (it->second.owner != OperatorId(i)) {
        uses.ties.push_back({it->second.owner, it->second.owner_input, OperatorId(i), k});
        uses.parameter_reads[it->second.owner.index][it->second.owner_input] += reads;
        if (!product || k >= 2) uses.products_alone[it->second.owner.index][it->second.owner_input] = false;
      }
    }
  }
  uses.parameters = count_parameters(model, uses.owns_parameter);
  return uses;
}

bool internals_can_be_recomputed(const Model& model, const Operator& op) {
  if (op.kind == OperatorKind::attention) return false;  // its backward makes the scores again as it is
  bool masks_only = true;
  for (const auto& access : op.outputs) {
    const Tensor& tensor = model.tensors[access.tensor];
    if (tensor.role == TensorRole::internal) masks_only = masks_only && !is_floating(tensor.type);
  }
  return masks_only || std::all_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
           return access.saved || model.tensors[access.tensor].role != TensorRole::activation;
         });
}

}  // namespace turnpoint
