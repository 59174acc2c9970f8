// SPDX-License-Identifier: Apache-2.0
// Exporters write GELU as five nodes and layer normalisation as up to nine. As one operator each they cost the
// search a fraction and are what a training framework runs.
#include <cmath>

#include "core/import/onnx/graph.h"

namespace turnpoint::onnx {

namespace {

class Folder {
 public:
  explicit Folder(Graph& graph) : g_(graph) {}

  void run() {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (!g_.nodes[n].domain.empty()) continue;
      if (g_.nodes[n].kind == "Erf") gelu(static_cast<int>(n));
      if (g_.nodes[n].kind == "Sqrt") layer_normalisation(static_cast<int>(n));
    }
  }

 private:
  std::optional<double> scalar(int value) const {
    const auto constant = g_.constant(value);
    if (!constant || constant->size() != 1) return std::nullopt;
    return constant->real(0);
  }
  /// The only consumer of a value that is no result.
  int only_consumer(int value) const {
    if (value < 0 || g_.values[value].result || g_.values[value].consumers.size() != 1) return -1;
    return g_.values[value].consumers.front();
  }
  bool is(int node, std::string_view kind) const {
    return node >= 0 && g_.nodes[node].kind == kind && g_.nodes[node].domain.empty();
  }
  int producer(int value, std::string_view kind) const {
    if (value < 0) return -1;
    const int node = g_.values[value].producer;
    return is(node, kind) ? node : -1;
  }
  /// The other operand of a two-operand node.
  int other(int node, int value) const {
    const auto& in = g_.nodes[node].inputs;
    if (in.size() != 2) return -1;
    return in[0] == value ? in[1] : in[1] == value ? in[0] : -1;
  }
  /// node computes value x constant for one operand: returns the value.
  int scaled(int node) const {
    if (!is(node, "Mul") && !is(node, "Div")) return -1;
    const auto& in = g_.nodes[node].inputs;
    if (in.size() != 2) return -1;
    if (in[1] >= 0 && scalar(in[1])) return in[0];
    return is(node, "Mul") && in[0] >= 0 && scalar(in[0]) ? in[1] : -1;
  }

  /// Turns node `last` into `kind` reading `inputs`; the nodes between become dead. Consumer lists follow.
  void replace(int last, std::string kind, std::vector<int> inputs, AttributeMap attributes) {
    auto& node = g_.nodes[last];
    for (const int value : node.inputs) {
      if (value < 0) continue;
      auto& consumers = g_.values[value].consumers;
      consumers.erase(std::remove(consumers.begin(), consumers.end(), last), consumers.end());
    }
    g_.made_attributes.push_back(std::move(attributes));
    node.attributes = &g_.made_attributes.back();
    node.kind = std::move(kind);
    node.inputs = std::move(inputs);
    for (const int value : node.inputs) {
      if (value >= 0) g_.values[value].consumers.push_back(last);
    }
  }

  /// 0.5 x (1 + erf(x / sqrt 2)) in any order of its three factors.
  void gelu(int erf) {
    const int argument = g_.nodes[erf].input(0);
    if (argument < 0 || g_.values[argument].producer < 0) return;
    const int x = scaled(g_.values[argument].producer);
    const int add = only_consumer(g_.nodes[erf].output(0));
    if (x < 0 || !is(add, "Add")) return;
    const auto one = scalar(other(add, g_.nodes[erf].outputs[0]));
    if (!one || *one != 1) return;
    int last = add;
    bool has_x = false, has_half = false;
    for (int step = 0; step < 2; ++step) {
      const int value = g_.nodes[last].output(0), next = only_consumer(value);
      if (!is(next, "Mul") && !is(next, "Div")) break;
      const int factor = other(next, value);
      if (factor < 0) break;
      if (factor == x && !has_x) {
        has_x = true;
      } else if (scalar(factor) && !has_half) {
        has_half = true;
      } else if (const int half = g_.values[factor].producer; half >= 0 && !has_x && !has_half && scaled(half) == x) {
        has_x = has_half = true;
      } else {
        break;
      }
      last = next;
      if (has_x && has_half) return replace(last, "Gelu", {x}, {});
    }
  }

  /// (x - mean x) / sqrt(mean (x - mean x)^2 + eps) [x scale] [+ bias], from its square root outwards.
  void layer_normalisation(int root) {
    const int shifted = producer(g_.nodes[root].input(0), "Add");
    if (shifted < 0 || g_.nodes[shifted].inputs.size() != 2) return;
    int variance = -1;
    for (const int operand : g_.nodes[shifted].inputs) {
      if (const int mean = producer(operand, "ReduceMean"); mean >= 0) variance = mean;
    }
    if (variance < 0) return;
    const int square_value = g_.nodes[variance].input(0);
    int difference_value = -1;
    if (const int pow = producer(square_value, "Pow"); pow >= 0 && scalar(g_.nodes[pow].input(1)).value_or(0) == 2)
      difference_value = g_.nodes[pow].input(0);
    if (const int mul = producer(square_value, "Mul"); mul >= 0 && g_.nodes[mul].input(0) == g_.nodes[mul].input(1))
      difference_value = g_.nodes[mul].input(0);
    const int difference = producer(difference_value, "Sub");
    if (difference < 0) return;
    const int x = g_.nodes[difference].input(0), mean = producer(g_.nodes[difference].input(1), "ReduceMean");
    if (mean < 0 || x < 0 || g_.nodes[mean].input(0) != x) return;
    const auto axis = last_axis(mean);
    if (!axis || axis != last_axis(variance)) return;
    const int quotient = only_consumer(g_.nodes[root].output(0));
    if (!is(quotient, "Div")) return;
    const int numerator = g_.nodes[quotient].input(0);
    const int again = producer(numerator, "Sub");  // some exporters compute the difference twice
    if (again < 0 || g_.nodes[again].inputs != g_.nodes[difference].inputs) return;

    int last = quotient, scale = -1, bias = -1;
    const auto weight_after = [&](const char* kind) {
      const int value = g_.nodes[last].output(0), next = only_consumer(value);
      if (!is(next, kind)) return -1;
      const int factor = other(next, value);
      return factor >= 0 && (g_.values[factor].initializer || g_.values[factor].input) ? factor : -1;
    };
    if (const int found = weight_after("Mul"); found >= 0) {
      scale = found;
      last = only_consumer(g_.nodes[last].output(0));
      if (const int added = weight_after("Add"); added >= 0) {
        bias = added;
        last = only_consumer(g_.nodes[last].output(0));
      }
    }
    AttributeMap attributes;
    attributes["axis"].i = *axis;
    replace(last, "LayerNormalization", {x, scale, bias}, std::move(attributes));
  }

  /// The axis of a mean over one axis that keeps its dimension; layer normalisation is over the last, written -1 or
  /// positive.
  std::optional<std::int64_t> last_axis(int mean) const {
    auto axes = g_.nodes[mean].integers("axes");
    if (axes.empty()) {
      if (const auto input = g_.constant(g_.nodes[mean].input(1)); input && !input->floating()) axes = input->integers;
    }
    if (axes.size() != 1 || g_.nodes[mean].integer("keepdims", 1) != 1) return std::nullopt;
    // Without shapes a positive axis cannot be told to be the last; transformers of the usual rank have it at 2.
    if (axes[0] != -1 && axes[0] != 2) return std::nullopt;
    return axes[0];
  }

  Graph& g_;
};

}  // namespace

void fold_patterns(Graph& graph) { Folder(graph).run(); }

}  // namespace turnpoint::onnx
