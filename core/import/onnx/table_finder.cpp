// SPDX-License-Identifier: Apache-2.0
// Tells tables that an exporter computed (rotary angles, masks, position biases) from weights among the initialisers,
// and finds weights that were stored a second time, transposed.
#include <algorithm>
#include <cctype>

#include "core/import/onnx/binder.h"

namespace turnpoint::onnx {

namespace {

bool is_any(std::string_view text, std::initializer_list<std::string_view> options) {
  return std::find(options.begin(), options.end(), text) != options.end();
}

bool only_views(const std::string& kind) {
  return is_any(kind, {"Identity", "Transpose", "Reshape", "Cast", "CastLike", "Unsqueeze", "Squeeze", "Flatten",
                       "Expand", "Slice"});
}

/// Names that PyTorch's exporters give to what they folded: "val_113", "where", "unsqueeze_14", "onnx::Add_412".
/// Weights keep the path of their module ("encoder.pos_embedding") or a name that its author chose ("class_token").
bool is_generated_name(std::string_view name) {
  if (name.starts_with("onnx::")) return true;
  if (const auto digits = name.find_last_not_of("0123456789"); digits != name.npos && name[digits] == '_')
    name = name.substr(0, digits);
  return is_any(name, {"val",    "where",  "unsqueeze",   "squeeze", "add",       "mul",     "sub",     "div",
                       "neg",    "cos",    "sin",         "cat",     "expand",    "permute", "view",    "slice",
                       "select", "index",  "masked_fill", "clone",   "transpose", "full",    "tril",    "triu",
                       "stack",  "repeat", "sigmoid",     "softmax", "reshape",   "type_as", "_to_copy"});
}

class TableFinder {
 public:
  explicit TableFinder(const Graph& graph) : graph_(graph) {
    for (const auto& value : graph.values) {
      const std::string_view name = value.name;
      named_ = named_ || (value.initializer && (name.ends_with(".weight") || name.ends_with(".bias")));
    }
  }

  bool is_table(int value) const {
    const auto* tensor = graph_.values[value].initializer;
    if (!tensor || !tensor->type || !is_floating(*tensor->type) || tensor->dims.empty()) return false;
    // Buffers of Transformers that no state dictionary holds: rotary frequencies and sinusoidal positions.
    const std::string_view name = graph_.values[value].name;
    if (name.ends_with("inv_freq") || name.ends_with(".embed_positions") || feeds_angles(value)) return true;
    return named_ && tensor->dims.size() >= 2 && is_generated_name(graph_.values[value].name) && only_pointwise(value);
  }

  /// A class token that was expanded to the exported batch when constants were folded.
  bool is_repeated(int value, std::int64_t batch) const {
    const auto& v = graph_.values[value];
    if (!named_ || batch < 2 || !is_generated_name(v.name) || !v.initializer->type) return false;
    const auto& dims = v.initializer->dims;
    return is_floating(*v.initializer->type) && dims.size() >= 3 && dims[0] == batch &&
           std::all_of(v.consumers.begin(), v.consumers.end(), [&](int n) {
             return graph_.nodes[n].kind == "Concat" && graph_.nodes[n].integer("axis", 0) != 0;
           });
  }

 private:
  /// Whether the way from here leads to a sine or cosine alone: frequencies of rotary or sinusoidal positions.
  bool feeds_angles(int start) const {
    bool angles = false;
    const bool others = reaches_other(
        start,
        [](const Node& node) {
          return only_views(node.kind) || is_any(node.kind, {"Mul", "MatMul", "Einsum", "Concat", "Div", "Reciprocal"});
        },
        [&](const Node& node) {
          const bool angle = is_any(node.kind, {"Cos", "Sin"});
          angles = angles || angle;
          return angle;
        });
    return angles && !others;
  }

  bool only_pointwise(int start) const {
    bool any = false;
    const bool others = reaches_other(
        start, [](const Node& node) { return only_views(node.kind); },
        [&](const Node& node) {
          const bool pointwise = is_any(node.kind, {"Add", "Sub", "Mul", "Div", "Where"});
          any = any || pointwise;
          return pointwise;
        });
    return any && !others;
  }

  /// Follows `start` through nodes of kind `through`; whether anything but an `end` is read on the way.
  template <class Through, class End>
  bool reaches_other(int start, Through through, End end) const {
    std::vector<int> pending{start};
    std::set<int> seen;
    while (!pending.empty()) {
      const int at = pending.back();
      pending.pop_back();
      if (!seen.insert(at).second) continue;
      if (seen.size() > 64 || graph_.values[at].result) return true;
      for (const int consumer : graph_.values[at].consumers) {
        const auto& node = graph_.nodes[consumer];
        if (end(node)) continue;
        if (!through(node)) return true;
        for (const int output : node.outputs)
          if (output >= 0) pending.push_back(output);
      }
    }
    return false;
  }

  const Graph& graph_;
  bool named_ = false;
};

void find_filled_weights(const Graph& graph, InputPlan& plan) {
  bool stands_for_weights = false;
  std::vector<int> candidates;
  for (const auto& node : graph.nodes) {
    if (node.kind != "ConstantOfShape" || node.output(0) < 0) continue;
    const auto shape = graph.constant(node.input(0));
    const auto* fill = node.attribute("value");
    const bool floating = !fill || !fill->tensor || (fill->tensor->type && is_floating(*fill->tensor->type));
    if (!shape || shape->floating() || !floating) continue;
    for (const int reader : graph.values[node.outputs[0]].consumers) {
      const auto& kind = graph.nodes[reader].kind;
      const bool weighs = is_any(kind, {"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization"});
      stands_for_weights = stands_for_weights || (weighs && graph.nodes[reader].input(0) != node.outputs[0]);
    }
    if (shape->size() == 1 && shape->integers[0] > 1) candidates.push_back(node.outputs[0]);
  }
  for (const int value : candidates) {
    int at = value;
    while (graph.values[at].consumers.size() == 1 && graph.nodes[graph.values[at].consumers[0]].output(0) >= 0 &&
           is_any(graph.nodes[graph.values[at].consumers[0]].kind, {"Unsqueeze", "Reshape", "Identity"}))
      at = graph.nodes[graph.values[at].consumers[0]].outputs[0];
    for (const int reader : graph.values[at].consumers) {
      const auto& node = graph.nodes[reader];
      if (!stands_for_weights || !is_any(node.kind, {"Mul", "Add"}) || node.inputs.size() != 2) continue;
      const int other = node.inputs[0] == at ? node.inputs[1] : node.inputs[0];
      const int maker = other >= 0 ? graph.values[other].producer : -1;
      if (maker >= 0 && !is_any(graph.nodes[maker].kind, {"Constant", "ConstantOfShape"}))
        plan.filled_weights.insert(value);
    }
  }
}

}  // namespace

void find_tables(const Graph& graph, InputPlan& plan) {
  find_filled_weights(graph, plan);
  const TableFinder finder(graph);
  std::map<std::uint64_t, int> first;  // of each set of samples
  double small = 0;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const int value = static_cast<int>(v);
    const auto* tensor = graph.values[v].initializer;
    if (!tensor || graph.values[v].consumers.empty()) continue;
    if (finder.is_table(value)) plan.tables.insert(value);
    if (finder.is_repeated(value, plan.fixed_batch)) plan.repeated.insert(value);
    if (tensor->type && size_of(*tensor->type) == 1 && *tensor->type != ElementType::boolean &&
        tensor->dims.size() > 1) {
      double elements = 1;
      for (const auto size : tensor->dims) elements *= static_cast<double>(size);
      small += elements;
    }
    if (tensor->samples == 0) continue;
    const auto [found, added] = first.emplace(tensor->samples, value);
    const auto& other = *graph.values[found->second].initializer;
    if (!added && other.dims.size() == 2 && other.dims[0] == tensor->dims[1] && other.dims[1] == tensor->dims[0])
      plan.transposed_twins[value] = found->second;
  }
  plan.eight_bit_elements = small;
}

}  // namespace turnpoint::onnx
