// SPDX-License-Identifier: Apache-2.0
// An ONNX file as written: messages and fields of onnx.proto that matter to us, without the weights' values.
// Names are cleaned to valid UTF-8; data is kept of small tensors only (shapes, axes, scalars).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/model/model.h"

namespace turnpoint::onnx {

/// Values of a small tensor, row-major. Integers and booleans in `integers`, floating-point numbers in `reals`.
struct Constant {
  ElementType type = ElementType::i64;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;

  bool floating() const { return is_floating(type); }
  std::size_t size() const { return floating() ? reals.size() : integers.size(); }
  double real(std::size_t i) const { return floating() ? reals[i] : static_cast<double>(integers[i]); }
};
using ConstantPtr = std::shared_ptr<const Constant>;

/// Tensors with at most this many elements keep their values.
inline constexpr std::size_t kMaxKeptElements = 4096;

struct TensorProto {
  std::string name;
  std::optional<ElementType> type;  ///< none: a type that no training computes with (string, complex)
  std::vector<std::int64_t> dims;
  ConstantPtr data;      ///< of small tensors with data inside the file
  std::string external;  ///< "location:offset" of data outside the file, as an identity only: never opened
  /// Hash of some elements of a matrix inside the file, chosen so that its transpose has the same; 0: none (another
  /// rank, square, outside the file, too few different numbers).
  std::uint64_t samples = 0;
};

struct Dimension {
  std::int64_t value = -1;  ///< -1: unknown or symbolic
  std::string symbol;
};

struct ValueInfo {
  std::string name;
  std::optional<ElementType> type;
  bool has_shape = false;
  std::vector<Dimension> shape;
};

struct GraphProto;

struct Attribute {
  std::optional<std::int64_t> i;
  std::optional<double> f;
  std::optional<std::string> s;
  std::vector<std::int64_t> ints;
  std::vector<double> floats;
  std::shared_ptr<const TensorProto> tensor;
  std::shared_ptr<const GraphProto> graph;
  std::string reference;  ///< inside a function: name of the caller's attribute
};

struct NodeProto {
  std::string name, kind, domain;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute, std::less<>> attributes;
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
};

struct FunctionProto {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<NodeProto> nodes;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  ///< domain ("" for ai.onnx) to version
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

/// `file` is named in errors. Bounded in time and memory by the size of the file, whatever its content.
Expected<ModelProto> parse_model(std::span<const std::uint8_t> bytes, const std::string& file);

}  // namespace turnpoint::onnx
