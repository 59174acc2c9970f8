// SPDX-License-Identifier: Apache-2.0
// Tells data from weights among the graph's inputs, and which dimension is the batch.
#include <algorithm>
#include <cctype>

#include "core/import/onnx/binder.h"

namespace turnpoint::onnx {

namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> options) {
  return std::find(options.begin(), options.end(), text) != options.end();
}

std::string lower(std::string text) {
  for (auto& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool means_batch(const std::string& symbol) {
  const auto s = lower(symbol);
  return s.find("batch") != std::string::npos || one_of(s, {"n", "b", "bs", "bsz", "bsize"});
}

bool means_sequence(const std::string& symbol) {
  const auto s = lower(symbol);
  if (means_batch(symbol)) return false;
  return s.find("seq") != std::string::npos || s.find("len") != std::string::npos ||
         s.find("time") != std::string::npos || s.find("token") != std::string::npos || one_of(s, {"s", "t", "l"});
}

bool is_static(const ValueNode& value) {
  if (!value.input->has_shape) return false;
  return std::all_of(value.input->shape.begin(), value.input->shape.end(),
                     [](const Dimension& d) { return d.value > 0; });
}

/// A weight may pass through these on its way to the slot.
bool passes_through(const std::string& kind) {
  return one_of(kind, {"Identity", "Transpose", "Reshape", "Cast", "Unsqueeze", "Squeeze", "Flatten"});
}

class WeightFinder {
 public:
  explicit WeightFinder(const Graph& graph) : graph_(graph) {}

  bool feeds_weight_slot(int value) const {
    const auto& source = graph_.values[value];
    if (!is_static(source) || !source.input->type || !is_floating(*source.input->type) || source.input->shape.empty())
      return false;
    std::vector<int> pending{value};
    std::set<int> seen;
    while (!pending.empty() && seen.size() < 64) {
      const int at = pending.back();
      pending.pop_back();
      if (!seen.insert(at).second) continue;
      for (const int consumer : graph_.values[at].consumers) {
        const auto& node = graph_.nodes[consumer];
        if (passes_through(node.kind) && node.input(0) == at) {
          if (node.output(0) >= 0) pending.push_back(node.outputs[0]);
          continue;
        }
        for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
          if (node.inputs[slot] == at && is_weight_slot(node, slot, source.input->shape.size())) return true;
        }
      }
    }
    return false;
  }

  /// A class token or a table of positions: one row for all samples, joined or added to what is computed. Masks have
  /// that form too; they say so in their names.
  bool feeds_positions(int value) const {
    const auto& source = graph_.values[value];
    if (!is_static(source) || !source.input->type || !is_floating(*source.input->type)) return false;
    const auto& shape = source.input->shape;
    if (shape.size() < 2 || shape[0].value != 1 || lower(source.name).find("mask") != std::string::npos) return false;
    return std::any_of(source.consumers.begin(), source.consumers.end(), [&](int n) {
      const auto& node = graph_.nodes[n];
      if (node.kind == "Expand" || node.kind == "Concat") return node.kind == "Expand" || node.inputs.size() > 1;
      return node.kind == "Add" && node.inputs.size() == 2 &&
             computed(node.inputs[0] == value ? node.inputs[1] : node.inputs[0]);
    });
  }

 private:
  bool computed(int value) const { return value >= 0 && graph_.values[value].producer >= 0; }

  bool is_weight_slot(const Node& node, std::size_t slot, std::size_t rank) const {
    const auto& kind = node.kind;
    if (one_of(kind, {"Conv", "ConvTranspose", "Gemm", "LayerNormalization", "InstanceNormalization",
                      "GroupNormalization", "PRelu"}))
      return slot >= 1;
    if (kind == "BatchNormalization") return slot >= 1 && slot <= 4;
    if (one_of(kind, {"LSTM", "GRU", "RNN"})) return slot >= 1 && slot <= 3;
    if (kind == "MatMul") return slot == 1 && rank == 2;
    if (kind == "Gather") return slot == 0 && rank == 2 && !graph_.constant(node.input(1));
    if (one_of(kind, {"Add", "Mul"})) return rank == 1 && computed(node.input(1 - std::min<std::size_t>(slot, 1)));
    return false;
  }

  const Graph& graph_;
};

}  // namespace

std::string dimension_symbol(const ValueNode& value, std::size_t dim) {
  const auto& d = value.input->shape[dim];
  if (d.value > 0) return {};
  return d.symbol.empty() ? value.name + ":" + std::to_string(dim) : d.symbol;
}

void take_buffers(const Graph& graph, const std::set<std::string>& buffers, InputPlan& plan) {
  if (!plan.weights.empty()) {
    plan.weights.clear();
    plan.data = graph.inputs;
  }
  plan.tables.clear();
  plan.repeated.clear();
  plan.filled_weights.clear();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ValueNode& value = graph.values[v];
    const bool statistics = std::any_of(value.consumers.begin(), value.consumers.end(),
                                        [&](int n) { return graph.nodes[n].kind == "BatchNormalization"; });
    if (value.initializer && buffers.count(value.name) && !statistics) plan.tables.insert(static_cast<int>(v));
  }
}

InputPlan plan_inputs(const Graph& graph) {
  InputPlan plan;
  const WeightFinder finder(graph);
  for (const int value : graph.inputs) {
    if (finder.feeds_weight_slot(value))
      plan.weights.insert(value);
    else
      plan.data.push_back(value);
  }
  // Only where weights are inputs at all, and never the only data.
  for (std::size_t k = 1; k < plan.data.size() && !plan.weights.empty();) {
    if (!finder.feeds_positions(plan.data[k])) {
      ++k;
      continue;
    }
    plan.weights.insert(plan.data[k]);
    plan.data.erase(plan.data.begin() + static_cast<std::ptrdiff_t>(k));
  }
  std::vector<std::string> symbols, leading;
  for (const int value : plan.data) {
    const auto& v = graph.values[value];
    for (std::size_t d = 0; d < v.input->shape.size(); ++d) {
      const auto symbol = dimension_symbol(v, d);
      if (symbol.empty()) continue;
      if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) symbols.push_back(symbol);
      if (d == 0) leading.push_back(symbol);
    }
  }
  for (const auto* list : {&symbols, &leading}) {
    for (const auto& symbol : *list) {
      const bool fits = list == &symbols ? means_batch(symbol) : !means_sequence(symbol);
      if (plan.batch_symbol.empty() && fits) plan.batch_symbol = symbol;
    }
  }
  if (plan.batch_symbol.empty()) {
    for (const int value : plan.data) {
      const auto& shape = graph.values[value].input->shape;
      if (plan.fixed_batch == 0 && !shape.empty() && shape[0].value > 0) plan.fixed_batch = shape[0].value;
    }
  }
  find_tables(graph, plan);
  for (const auto& symbol : symbols) {
    if (symbol == plan.batch_symbol) continue;
    bool spatial = false;
    for (const int value : plan.data) {
      const auto& v = graph.values[value];
      for (std::size_t d = 2; d < v.input->shape.size() && v.input->shape.size() >= 4; ++d)
        spatial = spatial || dimension_symbol(v, d) == symbol;
    }
    (spatial && !means_sequence(symbol) ? plan.other_symbols : plan.sequence_symbols).push_back(symbol);
  }
  return plan;
}

}  // namespace turnpoint::onnx
