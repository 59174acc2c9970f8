// SPDX-License-Identifier: Apache-2.0
// Binding hand-made graphs: the model or the message.
#pragma once

#include <QtTest>
#include <cmath>

#include "core/import/onnx/onnx_source.h"
#include "import/onnx_writer.h"

using namespace turnpoint;
using test::attribute;
using test::integers;
using test::Message;
using Shape = std::vector<std::int64_t>;

namespace {  // one copy per test program

struct Bound {
  ModelPtr model;
  std::string error;

  const Tensor& result(std::size_t i = 0) const { return model->tensors[model->results.at(i)]; }
  const Operator& maker(std::size_t i = 0) const { return model->operators[result(i).producer]; }
  std::size_t count(OperatorKind kind) const {
    return static_cast<std::size_t>(std::count_if(model->operators.begin(), model->operators.end(),
                                                  [&](const auto& op) { return op.kind == kind; }));
  }
  const LoopDimension* dim(const Operator& op, DimName name) const {
    for (const auto& d : op.dims) {
      if (d.name == name) return &d;
    }
    return nullptr;
  }
};

[[maybe_unused]] inline Bound bind(const test::Model& m, std::int64_t batch = 4, std::int64_t sequence = 8) {
  const auto bytes = m.bytes();
  const auto source = open_onnx_bytes(test::as_bytes(bytes), "test.onnx");
  if (!source) return {nullptr, source.error().message()};
  const auto model = (*source)->bind({batch, sequence});
  if (!model) return {nullptr, model.error().message()};
  return {*model, {}};
}

[[maybe_unused]] inline std::vector<std::int64_t> list(std::initializer_list<std::int64_t> values) { return values; }

}  // namespace

#define BIND(name, ...)                 \
  const Bound name = bind(__VA_ARGS__); \
  QVERIFY2(name.model, name.error.c_str())
