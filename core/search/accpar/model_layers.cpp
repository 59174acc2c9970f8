// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/model_layers.h"

#include <algorithm>
#include <tuple>

#include "core/model/operator_kind.h"

namespace turnpoint::accpar {

namespace {

bool is_layer(const Operator& op) {
  return (record_of(op.kind).products && op.forward_macs > 0) || op.kind == OperatorKind::embedding;
}

bool walks_loop(const Access& access, std::uint8_t loop) {
  return std::any_of(access.walks.begin(), access.walks.end(),
                     [&](const auto& walk) { return std::find(walk.begin(), walk.end(), loop) != walk.end(); });
}

class LayerReader {
 public:
  explicit LayerReader(const Model& model) : model_(model) {
    held_.resize(model.tensors.size());
    result.layer_of.assign(model.operators.size(), kNoLayer);
  }

  void read() {
    for (std::uint32_t o = 0; o < model_.operators.size(); ++o) {
      const OperatorId id(o);
      if (is_layer(model_.operators[id]))
        add_layer(id);
      else
        follow(id);
    }
  }

  ModelLayers result;

 private:
  /// Whose state a tensor has, and which tensor it is, views and functions of one operand aside.
  struct Held {
    std::uint32_t layer = kNoLayer, root = 0;
  };

  bool is_weight(const Access& access) const {
    return model_.tensors[storage_of(model_, access.tensor)].role == TensorRole::parameter;
  }
  double elements(TensorId id) const { return static_cast<double>(model_.tensors[id].elements()); }
  double error_elements(TensorId id) const { return model_.tensors[id].requires_gradient ? elements(id) : 0; }

  /// The two operands of the product: what flows in, and the weights or the second thing that does.
  struct Operands {
    const Access* input = nullptr;
    const Access* other = nullptr;
  };
  Operands operands_of(const Operator& op) const {
    Operands found;
    for (const Access& access : op.inputs)
      if (!found.input && !is_weight(access)) found.input = &access;
    if (!found.input && !op.inputs.empty()) found.input = &op.inputs.front();
    for (const Access& access : op.inputs) {
      if (&access == found.input) continue;
      const auto rank = [&](const Access& a) { return std::pair(is_weight(a), elements(a.tensor)); };
      if (!found.other || rank(*found.other) < rank(access)) found.other = &access;
    }
    return found;
  }

  void add_layer(OperatorId id) {
    const Operator& op = model_.operators[id];
    const auto index = static_cast<std::uint32_t>(result.graph.layers.size());
    const Operands operands = operands_of(op);
    Layer layer;
    layer.name = op.name;
    auto loops = loops_of(op, operands, layer);
    layer.kind = kind_of(op, operands);
    layer.output = elements(op.outputs.front().tensor);
    if (operands.input && !is_weight(*operands.input)) {
      layer.input = elements(operands.input->tensor);
      layer.input_error = error_elements(operands.input->tensor);
    }
    bool other_gradient = false;
    for (const Access& access : op.inputs) {
      const Tensor& tensor = model_.tensors[access.tensor];
      if (is_weight(access) && tensor.requires_gradient) layer.weights += elements(access.tensor);
      if (&access == operands.other) other_gradient = tensor.requires_gradient;
    }
    layer.products[0] = op.forward_macs;
    const bool both = layer.input_error > 0 && other_gradient;
    if (layer.input_error > 0) layer.products[1] = both ? op.backward_macs / 2 : op.backward_macs;
    if (other_gradient) layer.products[2] = both ? op.backward_macs / 2 : op.backward_macs;

    result.graph.layers.push_back(std::move(layer));
    result.operators.push_back(id);
    result.loops.push_back(std::move(loops));
    result.layer_of[id] = index;
    producers_.emplace_back();
    depth_.push_back(0);
    std::vector<TensorId> read;
    for (const Access& access : op.inputs) {
      const Held& held = held_[access.tensor];
      if (held.layer == kNoLayer || std::find(read.begin(), read.end(), access.tensor) != read.end()) continue;
      read.push_back(access.tensor);
      result.graph.edges.push_back(
          {held.layer, index, Side::out, Side::in, elements(access.tensor), error_elements(access.tensor)});
      producers_[index].push_back(held.layer);
      depth_[index] = std::max(depth_[index], depth_[held.layer] + 1);
      readers_[held.root].push_back(index);
    }
    give(op, {index, fresh_root()});
  }

  std::array<std::vector<std::uint8_t>, kTypes> loops_of(const Operator& op, const Operands& operands,
                                                         Layer& layer) const {
    std::array<std::vector<std::uint8_t>, kTypes> loops;
    auto& [batch, reduction, output] = loops;
    std::vector<std::uint8_t> groups, outputs, rows;
    for (std::uint8_t l = 0; l < op.dims.size(); ++l) {
      const LoopDimension& dim = op.dims[l];
      if (!dim.splittable || dim.size < 2) continue;
      const bool in_input = operands.input && walks_loop(*operands.input, l),
                 in_other = operands.other && walks_loop(*operands.other, l),
                 in_output = walks_loop(op.outputs.front(), l);
      if (dim.name == DimName::batch && in_output)
        batch.push_back(l);
      else if (!in_output)
        reduction.push_back(l);
      else if (in_input && in_other)
        groups.push_back(l);
      else if (in_other)
        outputs.push_back(l);
      else
        rows.push_back(l);
    }
    // Samples may have another name, or share it with their positions.
    if (batch.empty() && !rows.empty()) batch.push_back(rows.front());
    const auto units = [&](const std::vector<std::uint8_t>& list) {
      double product = 1;
      for (const std::uint8_t l : list) product *= static_cast<double>(op.dims[l].size);
      return product;
    };
    layer.lengths = {units(batch), units(reduction), units(outputs)};
    layer.groups = units(groups);
    output = groups;
    output.insert(output.end(), outputs.begin(), outputs.end());
    return loops;
  }

  LayerKind kind_of(const Operator& op, const Operands& operands) const {
    switch (op.kind) {
      case OperatorKind::convolution: return LayerKind::convolution;
      case OperatorKind::embedding: return LayerKind::embedding;
      case OperatorKind::attention: return LayerKind::attention;
      case OperatorKind::matmul: break;
      default: return LayerKind::recurrent;
    }
    if (!operands.other || !is_weight(*operands.other)) return LayerKind::attention;
    for (std::uint8_t l = 0; l < op.dims.size(); ++l)
      if (op.dims[l].name == DimName::expert && walks_loop(*operands.other, l) && walks_loop(*operands.input, l))
        return LayerKind::experts;
    return LayerKind::fully_connected;
  }

  void follow(OperatorId id) {
    const Operator& op = model_.operators[id];
    std::vector<TensorId> held;
    for (const Access& access : op.inputs)
      if (held_[access.tensor].layer != kNoLayer) held.push_back(access.tensor);
    if (held.empty()) return;
    const auto rank = [&](TensorId t) { return std::tuple(elements(t), depth_[held_[t].layer], held_[t].layer); };
    const TensorId main =
        *std::max_element(held.begin(), held.end(), [&](TensorId a, TensorId b) { return rank(a) < rank(b); });
    const Held kept = held_[main];
    result.layer_of[id] = kept.layer;
    bool joined = false;
    for (const TensorId other : held) {
      if (held_[other].root == kept.root) continue;
      join(other, kept.layer);
      joined = true;
    }
    give(op, {kept.layer, joined ? fresh_root() : kept.root});
  }

  void join(TensorId other, std::uint32_t layer) {
    const Held& held = held_[other];
    Edge edge{held.layer, layer, Side::out, Side::out, elements(other), error_elements(other)};
    for (const std::uint32_t reader : readers_[held.root])
      if (leads_to(reader, layer)) {
        edge.from = reader, edge.from_side = Side::in;
        break;
      }
    if (edge.from == edge.to && edge.from_side == edge.to_side) return;
    result.graph.edges.push_back(edge);
    // What joins is part of what leaves, so that outer blocks see the way through it.
    if (edge.from < layer) producers_[layer].push_back(edge.from);
  }

  bool leads_to(std::uint32_t reader, std::uint32_t layer) const {
    std::vector<std::uint32_t> ways{layer};
    std::vector<bool> seen(layer + 1, false);
    while (!ways.empty()) {
      const std::uint32_t at = ways.back();
      ways.pop_back();
      if (at == reader) return true;
      if (at < reader || seen[at]) continue;
      seen[at] = true;
      ways.insert(ways.end(), producers_[at].begin(), producers_[at].end());
    }
    return false;
  }

  std::uint32_t fresh_root() {
    readers_.emplace_back();
    return static_cast<std::uint32_t>(readers_.size() - 1);
  }
  void give(const Operator& op, Held held) {
    for (const Access& access : op.outputs) held_[access.tensor] = held;
  }

  const Model& model_;
  IdVector<TensorId, Held> held_;
  std::vector<std::vector<std::uint32_t>> producers_;  ///< per layer
  std::vector<std::uint32_t> depth_;                   ///< per layer: how many stand before it, at most
  std::vector<std::vector<std::uint32_t>> readers_;    ///< per root: layers that took it, in order
};

}  // namespace

Expected<ModelLayers> layers_of(const Model& model) {
  LayerReader reader(model);
  reader.read();
  if (reader.result.graph.layers.empty())
    return bad_input("the model has no layer that can be partitioned: no product and no embedding", model.name);
  return std::move(reader.result);
}

}  // namespace turnpoint::accpar
