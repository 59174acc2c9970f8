// SPDX-License-Identifier: Apache-2.0
// A program of torch.export as its model.json has it: the schema of torch/_export/serde/schema.py, versions 5 to 8.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/expected.h"
#include "core/import/tensorflow/proto.h"

namespace turnpoint::torch_program {

using tensorflow::DataType;

inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 48;  ///< of a dimension

/// A size: known, or one of a symbol (empty: of an expression of symbols).
struct Size {
  std::int64_t value = -1;
  std::string symbol;
};

struct TensorMeta {
  DataType type = DataType::invalid;
  std::vector<Size> sizes;
};

/// A whole number of an argument: itself, or the name of what computes it.
struct Number {
  std::int64_t value = 0;
  std::string name;
};

struct Graph;

struct Argument {
  enum class Kind { none, tensor, tensors, integers, reals, flag, text, type, graph, other };
  Kind kind = Kind::none;
  bool list = false;                  ///< integers and reals: as a list
  std::vector<std::string> tensors;   ///< names, one of a tensor; "" where a list has none
  std::vector<Number> integers;
  std::vector<double> reals;
  bool flag = false;
  std::string text;
  DataType type = DataType::invalid;
  std::shared_ptr<const Graph> graph;
};

struct Node {
  std::string target;  ///< "aten.linear.default"
  std::string name, scope;
  std::vector<std::pair<std::string, Argument>> inputs;
  std::vector<std::string> outputs;  ///< tensors and numbers, lists written out
};

struct Graph {
  std::vector<std::string> inputs, outputs;  ///< tensors
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta> tensors;
};

struct Program {
  Graph graph;
  std::map<std::string, std::string> parameters, buffers;  ///< tensor of the graph to its path in the module
  std::vector<std::string> data, results;
};

/// `file` is named in errors. Numbers are checked; names need not mean anything.
Expected<Program> parse_program(std::string_view json, const std::string& file);

}  // namespace turnpoint::torch_program
