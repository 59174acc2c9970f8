// SPDX-License-Identifier: Apache-2.0
// The graph of an ONNX file with names resolved: nodes in a topological order, values by index, functions and the
// branches of If nodes inlined (the nodes of a branch carry its condition; the If node itself picks among their
// results), Loop and Scan laid out trip by trip, nodes that no result needs dropped, and a few multi-node patterns
// (GELU, layer normalisation) folded into one node.
#pragma once

#include <deque>
#include <memory>

#include "core/import/onnx/proto.h"

namespace turnpoint::onnx {

using AttributeMap = std::map<std::string, Attribute, std::less<>>;

struct Node {
  std::string name, kind, domain;
  std::vector<int> inputs, outputs;  ///< value indices, -1: absent
  const AttributeMap* attributes = nullptr;
  /// Inside branches of If nodes: the condition's value and whether the node belongs to its then-branch.
  std::vector<std::pair<int, bool>> guards;

  const Attribute* attribute(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  double real(std::string_view key, double otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view key) const;  ///< empty if absent
  int input(std::size_t i) const { return i < inputs.size() ? inputs[i] : -1; }
  int output(std::size_t i) const { return i < outputs.size() ? outputs[i] : -1; }
};

struct ValueNode {
  std::string name;
  int producer = -1;           ///< index into nodes
  std::vector<int> consumers;  ///< indices into nodes, one per use
  const TensorProto* initializer = nullptr;
  const ValueInfo* input = nullptr;     ///< graph input without initializer
  const ValueInfo* declared = nullptr;  ///< value_info or output declaration
  bool result = false;
};

struct Graph {
  std::shared_ptr<const ModelProto> proto;
  std::string file;
  std::vector<Node> nodes;
  std::vector<ValueNode> values;
  std::vector<int> inputs, results;
  std::int64_t opset = 1;
  std::deque<AttributeMap> made_attributes;  ///< of inlined and folded nodes
  std::vector<std::string> warnings;

  /// "file: node 'name' (Kind)", for errors.
  std::string place(const Node& node) const;
  /// The constant in `value` if it is known from the file alone: an initializer or a Constant node.
  ConstantPtr constant(int value) const;
};

Expected<std::shared_ptr<const Graph>> make_graph(std::shared_ptr<const ModelProto> proto, const std::string& file);

/// Folds written-out GELU and layer normalisation. Called by make_graph.
void fold_patterns(Graph& graph);

}  // namespace turnpoint::onnx
