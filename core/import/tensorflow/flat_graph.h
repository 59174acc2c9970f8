// SPDX-License-Identifier: Apache-2.0
// A TensorFlow graph with names resolved: calls of library functions inlined, control inputs dropped, loop back edges
// cut, and only what the network's results need: without gradients, optimisers, initialisation, saving and summaries.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/import/tensorflow/proto.h"

namespace turnpoint::tensorflow {

/// One output of a node; node -1: none.
struct Edge {
  int node = -1;
  int port = 0;
  bool operator==(const Edge&) const = default;
};

struct FlatNode {
  std::string name;  ///< with the names of inlined calls before it; unique
  std::string op;
  const NodeDef* def = nullptr;  ///< attributes; null for nodes that were made here
  std::vector<Edge> inputs;      ///< data inputs
  /// Calls, branches and loops: where each output really comes from. Edges never point to such a node.
  std::vector<Edge> results;
  bool batch_major = false;  ///< of kJointRecurrent: the steps are the second dimension
  bool is_call = false;
  bool inlined = false;         ///< came with a call
  std::vector<int> read_calls;  ///< calls whose results this node reads
  std::int64_t axis =
      -1;  ///< of kLayerNorm; of kBatchNorm where the channels are: 1 or, last, -1; of kRecurrent the gates

  const Attribute* attribute(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
};

struct FlatGraph {
  std::shared_ptr<const GraphDef> def;
  std::string file;
  std::vector<FlatNode> nodes;
  std::vector<int> order;  ///< live nodes, producers first
  std::vector<Edge> results;
  std::vector<std::string> warnings;
  /// Inputs that name nodes the file does not hold, and the first of them with its reader.
  std::size_t dangling = 0;
  std::string first_dangling;

  /// "file: node 'name' (Op)", for errors.
  std::string place(const FlatNode& node) const;
};

/// Op of the nodes that stand for missing inputs.
inline constexpr std::string_view kMissing = "(missing)";
/// Ops that fold_patterns() makes: x with scale, shift and, where the graph has them, running mean and variance.
inline constexpr std::string_view kBatchNorm = "(batch_norm)", kLayerNorm = "(layer_norm)", kGelu = "(gelu)",
                                  kSwish = "(swish)";
/// Ops that fold_recurrent() makes: steps, kernel, recurrent kernel (or both in one) and bias; the state at the end.
inline constexpr std::string_view kRecurrent = "(recurrent)", kJointRecurrent = "(joint_recurrent)",
                                  kLastStep = "(last_step)";

Expected<FlatGraph> flatten(std::shared_ptr<const GraphDef> def, const std::string& file);

// The parts behind it.
/// Chooses the results, cuts loops, folds patterns and fills `order`.
Expected<void> select_live(FlatGraph& graph);
/// Turns written-out normalisations and activations into one node each; what they were made of is left unread.
void fold_patterns(FlatGraph& graph);
/// Turns loops over time with one plain cell inside into recurrent layers.
void fold_recurrent(FlatGraph& graph);
/// First port of a named output of an operator with several ("Split:output:1", "TopKV2:indices:0").
int output_base(std::string_view op, std::string_view output);

}  // namespace turnpoint::tensorflow
