// SPDX-License-Identifier: Apache-2.0
// TensorFlow graphs written in text format by tests, bound to a model or a message.
#pragma once

#include <QtTest>
#include <string>
#include <vector>

#include "core/import/tensorflow/tensorflow_source.h"

using namespace turnpoint;
using Shape = std::vector<std::int64_t>;

namespace {  // one copy per test program

inline std::string attribute(const std::string& key, const std::string& value) {
  return " attr { key: \"" + key + "\" value { " + value + " } }";
}
inline std::string shape_text(const Shape& shape) {
  std::string text = "{";
  for (const auto size : shape) text += " dim { size: " + std::to_string(size) + " }";
  return text + " }";
}
inline std::string node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs = {},
                        const std::string& attributes = {}) {
  std::string text = "node { name: \"" + name + "\" op: \"" + op + "\"";
  for (const auto& input : inputs) text += " input: \"" + input + "\"";
  return text + attributes + " }\n";
}
[[maybe_unused]] inline std::string placeholder(const std::string& name, const Shape& shape,
                                                const std::string& type = "DT_FLOAT") {
  return node(name, "Placeholder", {},
              attribute("dtype", "type: " + type) + attribute("shape", "shape " + shape_text(shape)));
}
[[maybe_unused]] inline std::string weight(const std::string& name, const Shape& shape) {
  return node(name, "Const", {},
              attribute("dtype", "type: DT_FLOAT") + attribute("value", "tensor { dtype: DT_FLOAT tensor_shape " +
                                                                            shape_text(shape) + " float_val: 0.5 }"));
}
[[maybe_unused]] inline std::string variable(const std::string& name, const Shape& shape,
                                             const std::string& op = "VariableV2") {
  return node(name, op, {}, attribute("dtype", "type: DT_FLOAT") + attribute("shape", "shape " + shape_text(shape)));
}
[[maybe_unused]] inline std::string number(const std::string& name, float value) {
  return node(
      name, "Const", {},
      attribute("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: " + std::to_string(value) + " }"));
}
[[maybe_unused]] inline std::string integer(const std::string& name, std::int64_t value) {
  return node(name, "Const", {},
              attribute("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: " + std::to_string(value) + " }"));
}
[[maybe_unused]] inline std::string integers(const std::string& name, const Shape& values, const Shape& shape = {}) {
  std::string text = "tensor { dtype: DT_INT32 tensor_shape " +
                     shape_text(shape.empty() ? Shape{static_cast<std::int64_t>(values.size())} : shape);
  for (const auto value : values) text += " int_val: " + std::to_string(value);
  return node(name, "Const", {}, attribute("value", text + " }"));
}
[[maybe_unused]] inline std::string list(const std::string& key, const Shape& values) {
  std::string text = "list {";
  for (const auto value : values) text += " i: " + std::to_string(value);
  return attribute(key, text + " }");
}
[[maybe_unused]] inline std::string text(const std::string& key, const std::string& value) {
  return attribute(key, "s: \"" + value + "\"");
}
[[maybe_unused]] inline std::string flag(const std::string& key) { return attribute(key, "b: true"); }

struct Bound {
  ModelPtr model;
  std::string error;

  const Tensor& result(std::size_t i = 0) const { return model->tensors[model->results.at(i)]; }
  const Operator& maker(std::size_t i = 0) const { return model->operators[result(i).producer]; }
  std::size_t count(OperatorKind kind) const {
    return static_cast<std::size_t>(std::count_if(model->operators.begin(), model->operators.end(),
                                                  [&](const auto& op) { return op.kind == kind; }));
  }
  std::size_t count(const std::string& detail) const {
    return static_cast<std::size_t>(std::count_if(model->operators.begin(), model->operators.end(),
                                                  [&](const auto& op) { return op.detail == detail; }));
  }
  double macs() const { return summarise(*model).macs_forward; }
  bool warns(const std::string& part) const {
    return std::any_of(model->warnings.begin(), model->warnings.end(),
                       [&](const auto& w) { return w.find(part) != std::string::npos; });
  }
};

inline std::span<const std::uint8_t> as_bytes(const std::string& content) {
  return {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
}

[[maybe_unused]] inline Bound bind_graph(const std::string& graph, std::int64_t batch = 4, std::int64_t sequence = 8) {
  const auto source = open_tensorflow_bytes(as_bytes(graph), "test.pbtxt");
  if (!source) return {nullptr, source.error().message()};
  const auto model = (*source)->bind({batch, sequence});
  if (!model) return {nullptr, model.error().message()};
  return {*model, {}};
}

}  // namespace

#define BIND(name, ...)                       \
  const Bound name = bind_graph(__VA_ARGS__); \
  QVERIFY2(name.model, name.error.c_str())
