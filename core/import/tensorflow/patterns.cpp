// SPDX-License-Identifier: Apache-2.0
// Normalisations, GELU and swish are written out as up to twelve nodes each. As one operator they cost the search a
// fraction, are what a training framework runs, and running statistics are told from weights.
#include <algorithm>
#include <optional>

#include "core/import/tensorflow/flat_graph.h"

namespace turnpoint::tensorflow {

namespace {

class Folder {
 public:
  explicit Folder(FlatGraph& graph) : g_(graph) {}

  void run() {
    for (const int n : g_.order) {
      const auto& op = g_.nodes[static_cast<std::size_t>(n)].op;
      if (op == "Add" || op == "AddV2") normalisation(n);
      if (op == "Mul") activation(n);
    }
  }

 private:
  struct Affine {
    Edge x, scale, shift, mean, variance;
    bool scaled = false;
  };

  const FlatNode& at(Edge edge) const { return g_.nodes[static_cast<std::size_t>(edge.node)]; }
  bool is(Edge edge, std::string_view op) const { return edge.node >= 0 && edge.port == 0 && at(edge).op == op; }
  bool is_add(Edge edge) const { return (is(edge, "Add") || is(edge, "AddV2")) && at(edge).inputs.size() == 2; }
  bool is_product(Edge edge) const { return is(edge, "Mul") && at(edge).inputs.size() == 2; }
  Edge input(Edge edge, std::size_t i) const { return at(edge).inputs[i]; }

  /// Behind what changes no number.
  Edge source(Edge edge, bool through_reshape = false) const {
    for (int hops = 0; hops < 16; ++hops) {
      const auto& node = at(edge);
      const bool passes = node.op == "Identity" || node.op == "StopGradient" || node.op == "ReadVariableOp" ||
                          (node.op == "Cast" && is_weight(node.inputs.empty() ? Edge{} : node.inputs[0])) ||
                          (through_reshape && node.op == "Reshape");
      if (!passes || node.inputs.empty()) break;
      edge = node.inputs[0];
    }
    return edge;
  }
  bool is_weight(Edge edge) const {
    if (edge.node < 0) return false;
    const auto& op = at(edge).op;
    if (op == "Identity" || op == "ReadVariableOp") return !at(edge).inputs.empty();
    return op == "Const" || op == "VariableV2" || op == "Variable" || op == "VarHandleOp";
  }
  bool is_vector(Edge edge) const {
    const auto& node = at(edge);
    const auto* value = node.attribute("value");
    if (node.op == "Const")
      return value && value->tensor && value->tensor->shape.size() == 1 && is_floating(value->tensor->type);
    const auto* shape = node.attribute("shape");
    return is_weight(edge) && shape && shape->shape && *shape->shape && (*shape->shape)->size() == 1;
  }
  bool is_number(Edge edge) const {
    edge = source(edge);
    if (is(edge, "Cast") && !at(edge).inputs.empty()) edge = source(at(edge).inputs[0]);
    const auto* value = at(edge).op == "Const" ? at(edge).attribute("value") : nullptr;
    return value && value->tensor && value->tensor->known &&
           value->tensor->integers.size() + value->tensor->reals.size() == 1;
  }
  std::optional<std::vector<std::int64_t>> axes_of(Edge mean) const {
    if (!is(mean, "Mean") || at(mean).inputs.size() != 2) return std::nullopt;
    const auto* value = at(source(input(mean, 1))).attribute("value");
    if (!value || !value->tensor || !value->tensor->known || value->tensor->integers.empty()) return std::nullopt;
    return value->tensor->integers;
  }

  /// x s + (shift - mean s) with s = scale / sqrt(variance + epsilon), in the forms TensorFlow and Keras write it.
  std::optional<Affine> affine(int n) const {
    const auto& node = g_.nodes[static_cast<std::size_t>(n)];
    if (node.inputs.size() != 2) return std::nullopt;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Edge product = node.inputs[side], rest = node.inputs[1 - side];
      if (!is_product(product)) continue;
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        Affine found;
        found.x = input(product, k);
        const Edge factor = input(product, 1 - k);
        if (shift_of(rest, factor, found) && factor_of(factor, found)) return found;
      }
    }
    return std::nullopt;
  }
  bool shift_of(Edge rest, Edge factor, Affine& found) const {
    Edge moved;
    bool negated = false;
    if (is(rest, "Sub") && at(rest).inputs.size() == 2) {
      found.shift = input(rest, 0);
      moved = input(rest, 1);
    } else if (is_add(rest)) {
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        if (!is_product(input(rest, k))) continue;
        moved = input(rest, k);
        found.shift = input(rest, 1 - k);
      }
      negated = true;
    }
    if (moved.node < 0 || !is_product(moved)) return false;
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      if (!(input(moved, 1 - k) == factor)) continue;
      found.mean = input(moved, k);
      if (negated != is(found.mean, "Neg")) return false;
      if (negated) found.mean = input(found.mean, 0);
      return true;
    }
    return false;
  }
  bool factor_of(Edge factor, Affine& found) const {
    Edge root = factor;
    if (is_product(factor)) {
      const std::size_t k = is(input(factor, 0), "Rsqrt") ? 0 : 1;
      root = input(factor, k);
      found.scale = input(factor, 1 - k);
      found.scaled = true;
    }
    if (!is(root, "Rsqrt") || at(root).inputs.size() != 1 || !is_add(input(root, 0))) return false;
    const Edge sum = input(root, 0);
    const std::size_t k = is_number(input(sum, 1)) ? 0 : 1;
    found.variance = input(sum, k);
    return is_number(input(sum, 1 - k));
  }

  void normalisation(int n) {
    const auto found = affine(n);
    if (!found) return;
    auto& node = g_.nodes[static_cast<std::size_t>(n)];
    const Edge mean = source(found->mean, true), variance = source(found->variance, true);
    if (const auto axes = axes_of(mean)) {
      const auto again = axes_of(variance);
      if (!again || *again != *axes || !(source(input(mean, 0)) == source(found->x))) return;
      const bool over_batch = std::find(axes->begin(), axes->end(), 0) != axes->end();
      const Edge shift = source(found->shift, true), scale = found->scaled ? source(found->scale, true) : Edge{};
      if (!is_vector(shift) || !found->scaled || !is_vector(scale) || (!over_batch && axes->size() != 1)) return;
      const auto channel = over_batch ? channel_axis(found->shift) : axes->front();
      if (!channel) return;
      node.op = over_batch ? kBatchNorm : kLayerNorm;
      node.inputs = {found->x, scale, shift};
      node.axis = *channel;
      return;
    }
    const Edge shift = source(found->shift, true), scale = found->scaled ? source(found->scale, true) : variance;
    const auto channel = channel_axis(found->shift);
    if (!is_vector(mean) || !is_vector(variance) || !is_vector(shift) || !is_vector(scale) || !channel) return;
    node.op = kBatchNorm;
    node.inputs = {found->x, scale, shift, mean, variance};
    node.axis = *channel;
  }

  /// Where a vector of one number per channel lies in what it is added to: -1, the last dimension, or 1.
  std::optional<std::int64_t> channel_axis(Edge edge) const {
    edge = source(edge);
    if (!is(edge, "Reshape")) return -1;
    if (at(edge).inputs.size() != 2) return std::nullopt;
    const auto* value = at(source(input(edge, 1))).attribute("value");
    if (!value || !value->tensor || !value->tensor->known) return std::nullopt;
    const auto& shape = value->tensor->integers;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      if (d + 1 == shape.size()) return -1;
      return d == 1 ? std::optional<std::int64_t>(1) : std::nullopt;
    }
    return std::nullopt;
  }

  /// Computed from `x` and numbers alone.
  bool only_of(Edge edge, Edge x, int depth) const {
    if (edge == x) return true;
    if (is_number(edge)) return true;
    static constexpr std::string_view kOps[] = {"Neg", "Mul", "RealDiv", "Add", "AddV2", "Pow", "Square", "Cast"};
    const auto& node = at(edge);
    if (depth > 6 || node.inputs.empty() || node.inputs.size() > 2 ||
        std::find(std::begin(kOps), std::end(kOps), node.op) == std::end(kOps))
      return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](Edge e) { return only_of(e, x, depth + 1); });
  }
  void factors(Edge edge, int depth, std::vector<Edge>& out) const {
    if (depth < 3 && is_product(edge)) {
      factors(input(edge, 0), depth + 1, out);
      factors(input(edge, 1), depth + 1, out);
    } else {
      out.push_back(edge);
    }
  }
  /// The argument of the error function or hyperbolic tangent in 1 + f(...), or of erfc.
  std::optional<Edge> bell(Edge edge) const {
    if (is(edge, "Erfc") && at(edge).inputs.size() == 1) return input(edge, 0);
    if (!is_add(edge)) return std::nullopt;
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const Edge inner = input(edge, k);
      if (is_number(input(edge, 1 - k)) && (is(inner, "Erf") || is(inner, "Tanh")) && at(inner).inputs.size() == 1)
        return input(inner, 0);
    }
    return std::nullopt;
  }
  /// 0.5 x (1 + erf(x / sqrt 2)), its erfc and tanh forms; x sigmoid(x).
  void activation(int n) {
    auto& node = g_.nodes[static_cast<std::size_t>(n)];
    if (node.inputs.size() != 2) return;
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const Edge gate = node.inputs[k], x = node.inputs[1 - k];
      if (!is(gate, "Sigmoid") || at(gate).inputs.size() != 1 || !(input(gate, 0) == x)) continue;
      node.op = kSwish;
      node.inputs = {x};
      return;
    }
    std::vector<Edge> all;
    factors({n, 0}, 0, all);
    std::optional<Edge> argument, x;
    std::size_t numbers = 0;
    for (const Edge edge : all) {
      if (is_number(edge)) {
        ++numbers;
      } else if (const auto inner = bell(edge); inner && !argument) {
        argument = inner;
      } else if (!x) {
        x = edge;
      } else {
        return;
      }
    }
    if (!argument || !x || numbers != 1 || is_number(*argument) || !only_of(*argument, *x, 0)) return;
    node.op = kGelu;
    node.inputs = {*x};
  }

  FlatGraph& g_;
};

}  // namespace

void fold_patterns(FlatGraph& graph) { Folder(graph).run(); }

}  // namespace turnpoint::tensorflow
