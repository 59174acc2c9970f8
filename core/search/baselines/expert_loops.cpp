// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/expert_loops.h"

#include <algorithm>
#include <numeric>

namespace turnpoint::search {

namespace {

bool has_loop(const Access& access, int loop) {
  return std::ranges::any_of(access.walks,
                             [&](const auto& walk) { return std::ranges::find(walk, loop) != walk.end(); });
}

int expert_loop_of(const Operator& op) {
  for (std::size_t l = 0; l < op.dims.size(); ++l)
    if (op.dims[l].name == DimName::expert && can_split(op, int(l), false)) return int(l);
  return -1;
}

class ExpertFinder {
 public:
  explicit ExpertFinder(const Model& model) : model_(model) { found_.of.resize(model.operators.size()); }

  ExpertLoops run() {
    const std::size_t count = model_.operators.size();
    for (std::size_t i = 0; i < count; ++i) add_product(OperatorId(i));
    if (found_.experts == 0) return std::move(found_);
    for (std::size_t i = 0; i < count; ++i)
      if (reads_inside(OperatorId(i))) add_between(OperatorId(i));
    for (std::size_t i = count; i-- > 0;)
      if (feeds_inside_alone(OperatorId(i))) add_between(OperatorId(i));
    for (std::size_t i = 0; i < count; ++i) add_border(OperatorId(i));
    return std::move(found_);
  }

 private:
  bool is_activation(const Access& access) const {
    return model_.tensors[access.tensor].role == TensorRole::activation;
  }
  bool inside(OperatorId id) const { return id.valid() && found_.of[id.index].inside; }
  bool made_inside(const Access& access) const { return inside(model_.tensors[access.tensor].producer); }

  bool all_activations_have(const Operator& op, int loop) const {
    const auto has = [&](const Access& access) { return !is_activation(access) || has_loop(access, loop); };
    return std::ranges::all_of(op.inputs, has) && std::ranges::all_of(op.outputs, has);
  }

  void add_product(OperatorId id) {
    const Operator& op = model_.operators[id];
    const int loop = expert_loop_of(op);
    if (loop < 0 || !is_weighted_product(model_, op)) return;
    if (!has_loop(op.inputs[std::size_t(weight_input(model_, op))], loop) || !all_activations_have(op, loop)) return;
    found_.of[id.index] = {loop, true};
    found_.experts = std::gcd(found_.experts, op.dims[std::size_t(loop)].size);
  }

  void add_between(OperatorId id) {
    const Operator& op = model_.operators[id];
    const int loop = expert_loop_of(op);
    if (loop >= 0 && all_activations_have(op, loop)) found_.of[id.index] = {loop, true};
  }

  bool reads_inside(OperatorId id) const {
    return std::ranges::any_of(model_.operators[id].inputs, [&](const Access& access) { return made_inside(access); });
  }
  bool feeds_inside(OperatorId id, bool alone) const {
    bool any = false, all = true;
    for (const Access& access : model_.operators[id].outputs)
      for (const Model::Use& use : model_.uses[access.tensor]) any |= inside(use.op), all &= inside(use.op);
    return any && (all || !alone);
  }
  bool feeds_inside_alone(OperatorId id) const { return feeds_inside(id, true); }

  void add_border(OperatorId id) {
    if (inside(id)) return;
    const Operator& op = model_.operators[id];
    const int loop = expert_loop_of(op);
    if (loop < 0) return;
    const bool takes_back = std::ranges::any_of(
        op.inputs, [&](const Access& access) { return made_inside(access) && has_loop(access, loop); });
    if (takes_back || feeds_inside(id, false)) found_.of[id.index] = {loop, false};
  }

  const Model& model_;
  ExpertLoops found_;
};

}  // namespace

ExpertLoops find_expert_loops(const Model& model) { return ExpertFinder(model).run(); }

}  // namespace turnpoint::search
