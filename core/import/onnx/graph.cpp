// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/graph.h"

#include "core/import/onnx/graph_builder.h"

namespace turnpoint::onnx {

const Attribute* Node::attribute(std::string_view key) const {
  const auto found = attributes ? attributes->find(key) : AttributeMap::const_iterator();
  return attributes && found != attributes->end() ? &found->second : nullptr;
}
std::int64_t Node::integer(std::string_view key, std::int64_t otherwise) const {
  const auto* a = attribute(key);
  return a && a->i ? *a->i : otherwise;
}
double Node::real(std::string_view key, double otherwise) const {
  const auto* a = attribute(key);
  return a && a->f ? *a->f : otherwise;
}
std::string Node::text(std::string_view key, std::string_view otherwise) const {
  const auto* a = attribute(key);
  return a && a->s ? *a->s : std::string(otherwise);
}
std::vector<std::int64_t> Node::integers(std::string_view key) const {
  const auto* a = attribute(key);
  return a ? a->ints : std::vector<std::int64_t>();
}

std::string Graph::place(const Node& node) const { return file + ": node '" + node.name + "' (" + node.kind + ")"; }

ConstantPtr Graph::constant(int value) const {
  if (value < 0) return nullptr;
  const auto& v = values[value];
  if (v.initializer) return v.initializer->data;
  if (v.producer < 0) return nullptr;
  const auto& node = nodes[v.producer];
  if (node.kind == "Identity" && node.input(0) >= 0 && values[node.inputs[0]].initializer)
    return values[node.inputs[0]].initializer->data;
  if (node.kind != "Constant") return nullptr;
  const auto make = [](ElementType type, std::vector<std::int64_t> integers, std::vector<double> reals, bool scalar) {
    Constant c{type, {}, std::move(integers), std::move(reals)};
    if (!scalar) c.shape = {static_cast<std::int64_t>(c.size())};
    return std::make_shared<const Constant>(std::move(c));
  };
  if (const auto* a = node.attribute("value"); a && a->tensor) return a->tensor->data;
  if (const auto* a = node.attribute("value_int"); a && a->i) return make(ElementType::i64, {*a->i}, {}, true);
  if (const auto* a = node.attribute("value_float"); a && a->f) return make(ElementType::f32, {}, {*a->f}, true);
  if (const auto* a = node.attribute("value_ints")) return make(ElementType::i64, a->ints, {}, false);
  if (const auto* a = node.attribute("value_floats")) return make(ElementType::f32, {}, a->floats, false);
  return nullptr;
}

Expected<std::shared_ptr<const Graph>> make_graph(std::shared_ptr<const ModelProto> proto, const std::string& file) {
  return GraphBuilder(std::move(proto), file).run();
}

}  // namespace turnpoint::onnx
