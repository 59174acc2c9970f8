// SPDX-License-Identifier: Apache-2.0
// TensorFlow's graph messages as written: GraphDef, MetaGraphDef and SavedModel, the fields that matter to us, without
// the weights' values. Names are cleaned to printable text; data is kept of small tensors only (shapes, axes, scalars).
// Field numbers: graph.proto, node_def.proto, attr_value.proto, tensor.proto, function.proto, meta_graph.proto and
// saved_model.proto of TensorFlow 2.x, which read all older files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint::tensorflow {

using Shape = std::vector<std::int64_t>;  ///< -1: a size that is not known
using MaybeShape = std::optional<Shape>;  ///< none: not even the number of dimensions is known

/// Tensors with at most this many elements keep their values.
inline constexpr std::int64_t kMaxKeptElements = 4096;

/// DataType of types.proto; references (100 + type) are read as the type itself.
enum class DataType : std::uint8_t {
  invalid = 0,
  f32 = 1,
  f64 = 2,
  i32 = 3,
  u8 = 4,
  i16 = 5,
  i8 = 6,
  string = 7,
  complex64 = 8,
  i64 = 9,
  boolean = 10,
  qint8 = 11,
  quint8 = 12,
  qint32 = 13,
  bf16 = 14,
  qint16 = 15,
  quint16 = 16,
  u16 = 17,
  complex128 = 18,
  f16 = 19,
  resource = 20,
  variant = 21,
  u32 = 22,
  u64 = 23,
};
bool is_floating(DataType type);

struct TensorValue {
  DataType type = DataType::invalid;
  Shape shape;
  bool known = false;  ///< the values below are complete
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
};

struct Attribute {
  std::optional<std::int64_t> i;
  std::optional<double> f;
  std::optional<std::string> s;
  std::optional<bool> b;
  std::optional<DataType> type;
  std::optional<MaybeShape> shape;
  std::shared_ptr<const TensorValue> tensor;
  std::string function;
  std::vector<std::int64_t> integers;  ///< of a list; types as numbers
  std::vector<std::string> functions;
  std::vector<MaybeShape> shapes;
};

struct NodeDef {
  std::string name, op;
  std::vector<std::string> inputs;  ///< as written: "a", "a:1", "^a"
  std::map<std::string, Attribute, std::less<>> attributes;
};

struct FunctionDef {
  std::string name;
  std::vector<std::string> arguments, results;
  std::vector<NodeDef> nodes;
  std::map<std::string, std::string, std::less<>> returns;  ///< result -> "node:output:index" or an argument
};

struct GraphDef {
  std::vector<NodeDef> nodes;
  std::map<std::string, FunctionDef, std::less<>> functions;
  /// Tensor names that a signature of the file calls its outputs ("serving_default" where there are several).
  std::vector<std::string> outputs;
  /// Names of all variables that training updates, where the file lists them (the collections of TensorFlow 1).
  std::optional<std::set<std::string, std::less<>>> trainable;
  /// Names of variables that are marked as not trained (the objects of TensorFlow 2).
  std::set<std::string, std::less<>> untrained;
};

/// Reads a graph in either format; `file` is named in errors. Bounded in time and memory by the size of the file,
/// whatever its content. Of several meta graphs the one tagged first in the file is taken.
Expected<GraphDef> parse_graph(std::span<const std::uint8_t> bytes, const std::string& file);

/// Whether bytes in the wire format look like a GraphDef, MetaGraphDef or SavedModel, and not like another message.
bool looks_like_wire_graph(std::span<const std::uint8_t> bytes);

}  // namespace turnpoint::tensorflow
