// SPDX-License-Identifier: Apache-2.0
// How make_graph() works inside: names to values, functions and control flow inlined, nodes sorted.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/import/onnx/graph.h"

namespace turnpoint::onnx {

using Names = std::unordered_map<std::string, int>;

class GraphBuilder {
 public:
  GraphBuilder(std::shared_ptr<const ModelProto> proto, const std::string& file);
  Expected<std::shared_ptr<const Graph>> run();

 private:
  // --- frame (graph_builder.cpp) ---
  void fail(std::string what, std::string where);
  int define(Names& names, const std::string& name);
  const FunctionProto* function_of(const NodeProto& node) const;
  /// Appends `nodes`. A value may be used before the node that makes it (files out of order).
  void add_nodes(const std::vector<NodeProto>& nodes, Names& names, const std::string& prefix,
                 const AttributeMap* caller, int depth);
  void add_initializers(const GraphProto& graph, Names& names);
  void resolve_references(Node& node, const AttributeMap& caller);
  void inline_function(const FunctionProto& function, const NodeProto& call, const Node& node, Names& names, int depth);
  void resolve_results(const Names& names);
  bool sort();
  void reorder(const std::vector<int>& order);
  void drop_dead();

  // --- control flow (control_flow.cpp) ---
  /// What a node with graphs of its own is inlined in.
  struct Place {
    const NodeProto& source;
    const Node& node;  ///< its inputs resolved
    const std::string& prefix;
    const AttributeMap* caller;
    int depth;
    std::string label() const;
  };
  /// The graph in an attribute; null and an error where it is missing.
  const GraphProto* body_of(const Place& at, const char* attribute);
  bool may_copy(const Names& names);
  bool inline_branches(const Place& at, Node& node, const Names& names);
  /// Lays a Loop or Scan out trip by trip; its outputs become names.
  void inline_loop(const Place& at, Names& names);
  void inline_scan(const Place& at, Names& names);
  std::int64_t loop_trips(const Place& at, const GraphProto& body);
  std::int64_t scan_length(const Place& at, std::size_t first, const std::vector<std::int64_t>& axes);
  std::int64_t affordable(const Place& at, const GraphProto& body, std::int64_t trips);
  std::vector<std::int64_t> scan_axes(const Place& at, const char* attribute, std::size_t count);
  /// One trip: `names` holds what the body reads; afterwards it holds what the body made.
  void add_trip(const Place& at, const GraphProto& body, Names& names, std::int64_t trip);
  int output_of(const Place& at, const GraphProto& body, std::size_t index, const Names& names);
  int made_constant(std::int64_t value, const std::string& name);
  int made_node(std::string kind, std::string name, std::vector<int> inputs, AttributeMap attributes);
  /// The results of all trips along a new axis.
  int stacked(const std::vector<int>& parts, std::int64_t axis, const std::string& name);

  Graph graph_;
  std::map<std::pair<std::string, std::string>, const FunctionProto*> functions_;
  std::map<std::string, const ValueInfo*> declared_;  ///< of the outermost graph
  std::map<const NodeProto*, std::vector<int>>
      constants_;  ///< outputs of Constant nodes: stored once, however often met
  std::vector<std::pair<int, bool>> guards_;
  std::size_t copied_names_ = 0, unrolled_nodes_ = 0;
  std::optional<Error> error_;
};

}  // namespace turnpoint::onnx
