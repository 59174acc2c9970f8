// SPDX-License-Identifier: Apache-2.0
#include "core/cost/logical_dims.h"

#include <algorithm>
#include <numeric>

namespace turnpoint {

namespace {

class Unions {
 public:
  explicit Unions(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t(0)); }
  std::size_t find(std::size_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::size_t a, std::size_t b) {
    a = find(a), b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

bool is_vague(DimName name) {
  return name == DimName::other || name == DimName::channel || name == DimName::in_channel ||
         name == DimName::out_channel;
}

}  // namespace

int weight_input(const Model& model, const Operator& op) {
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const Tensor& tensor = model.tensors[storage_of(model, op.inputs[k].tensor)];
    if (tensor.role == TensorRole::parameter && tensor.shape.size() >= 2) return static_cast<int>(k);
  }
  return -1;
}

bool is_weighted_product(const Model& model, const Operator& op) {
  return op.kind == OperatorKind::matmul && weight_input(model, op) >= 0;
}

LogicalDims analyse_logical_dims(const Model& model, bool split_windows,
                                 const std::vector<std::pair<LoopRef, LoopRef>>& also_equal) {
  std::vector<std::size_t> first(model.operators.size() + 1, 0);
  for (std::size_t i = 0; i < model.operators.size(); ++i)
    first[i + 1] = first[i] + model.operators[OperatorId(i)].dims.size();
  Unions unions(first.back());
  const auto name_of = [&](OperatorId op, int loop) {
    return model.operators[op].dims[static_cast<std::size_t>(loop)].name;
  };
  // The first walker of every tensor dimension stands for it; tied parameters are one tensor.
  struct Walker {
    OperatorId op;
    int loop = -1;
  };
  IdVector<TensorId, std::vector<Walker>> walker(model.tensors.size());
  const auto visit = [&](OperatorId id, const Access& access) {
    const Operator& op = model.operators[id];
    if (op.kind == OperatorKind::input) return;
    const Tensor& tensor = model.tensors[access.tensor];
    const bool same = tensor.tied_to.valid() && model.tensors[tensor.tied_to].shape == tensor.shape;
    auto& walkers = walker[same ? tensor.tied_to : access.tensor];
    walkers.resize(std::max(walkers.size(), access.walks.size()));
    for (std::size_t d = 0; d < access.walks.size(); ++d) {
      const auto loop = outermost_walker(op, access.walks[d]);
      if (!loop) continue;
      Walker& known = walkers[d];
      if (known.loop < 0) {
        known = {id, *loop};
      } else {
        const DimName a = name_of(known.op, known.loop), b = name_of(id, *loop);
        const bool renamed = (a == DimName::key_sequence) != (b == DimName::key_sequence);
        if (!renamed)
          unions.join(first[known.op.index] + static_cast<std::size_t>(known.loop),
                      first[id.index] + static_cast<std::size_t>(*loop));
      }
    }
  };
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    for (const auto& access : op.outputs) visit(OperatorId(i), access);
    for (const auto& access : op.inputs) visit(OperatorId(i), access);
  }
  for (const auto& [a, b] : also_equal)
    unions.join(first[a.op.index] + static_cast<std::size_t>(a.loop),
                first[b.op.index] + static_cast<std::size_t>(b.loop));

  LogicalDims result;
  std::vector<int> class_of(first.back(), -1);
  result.of.resize(model.operators.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    result.of[i].assign(op.dims.size(), -1);
    if (op.kind == OperatorKind::input) continue;
    for (std::size_t l = 0; l < op.dims.size(); ++l) {
      int& id = class_of[unions.find(first[i] + l)];
      if (id < 0) {
        id = static_cast<int>(result.classes.size());
        result.classes.emplace_back();
        result.classes.back().name = op.dims[l].name;
      }
      auto& known = result.classes[static_cast<std::size_t>(id)];
      if (is_vague(known.name) && !is_vague(op.dims[l].name)) known.name = op.dims[l].name;
      known.members.push_back({OperatorId(i), static_cast<int>(l)});
      known.splittable = known.splittable && can_split(op, static_cast<int>(l), split_windows);
      result.of[i][l] = id;
    }
  }
  return result;
}

}  // namespace turnpoint
