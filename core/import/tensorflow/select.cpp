// SPDX-License-Identifier: Apache-2.0
// Which part of a graph is the network: from its results backwards, past everything that only trains, saves or reports.
#include <algorithm>
#include <array>
#include <queue>
#include <string_view>

#include "core/import/tensorflow/flat_graph.h"

namespace turnpoint::tensorflow {

namespace {

template <std::size_t N>
bool one_of(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// Writes a variable: what feeds it is an initial value or an update, no result of the network.
bool writes_variable(std::string_view op) {
  if (op.starts_with("Assign") || op.starts_with("Apply") || op.starts_with("ResourceApply") ||
      op.starts_with("SparseApply") || op.starts_with("ResourceSparseApply") || op.starts_with("Scatter") ||
      op.starts_with("ResourceScatter"))
    return op != "ScatterNd";
  return false;
}

/// Saves, restores, checks or reports.
bool is_bookkeeping(std::string_view op) {
  static constexpr std::array<std::string_view, 22> kOps = {"NoOp",
                                                            "SaveV2",
                                                            "RestoreV2",
                                                            "Save",
                                                            "SaveSlices",
                                                            "Restore",
                                                            "RestoreSlice",
                                                            "MergeV2Checkpoints",
                                                            "ShardedFilename",
                                                            "ShardedFilespec",
                                                            "Assert",
                                                            "Print",
                                                            "PrintV2",
                                                            "IsVariableInitialized",
                                                            "VarIsInitializedOp",
                                                            "HashTableV2",
                                                            "HashTable",
                                                            "LookupTableImportV2",
                                                            "InitializeTableV2",
                                                            "InitializeTableFromTextFileV2",
                                                            "WriteFile",
                                                            "DestroyResourceOp"};
  return one_of(op, kOps) || op.ends_with("Summary") || op.ends_with("SummaryV2") || op.starts_with("Write");
}

/// Made by differentiation: by its scope ("gradients/...", "gradient_tape/...", "training/Adam/gradients/...") or kind.
bool is_gradient(const FlatNode& node) {
  const std::string_view op = node.op, name = node.name;
  if (op.ends_with("Grad") || op.ends_with("GradV2") || op.ends_with("GradV3") || op == "BroadcastGradientArgs" ||
      op == "SymbolicGradient")
    return true;
  // The gradient of a convolution towards its data is also how a transposed convolution is written.
  if (op.find("Backprop") != std::string_view::npos && op != "Conv2DBackpropInput" && op != "Conv3DBackpropInputV2")
    return true;
  for (std::size_t begin = 0; begin < name.size();) {
    const auto end = std::min(name.find('/', begin), name.size());
    const auto part = name.substr(begin, end - begin);
    if (end < name.size() &&
        (part == "gradients" || part == "gradient_tape" ||
         (part.starts_with("gradients_") && part.find_first_not_of("0123456789", 10) == part.npos)))
      return true;
    begin = end + 1;
  }
  return false;
}

/// Nodes without inputs of their own kind: nothing they make is a result.
bool is_source(std::string_view op) {
  static constexpr std::array<std::string_view, 9> kOps = {"Const",          "Placeholder",        "PlaceholderV2",
                                                           "VariableV2",     "Variable",           "VarHandleOp",
                                                           "ReadVariableOp", "AutoReloadVariable", "(missing)"};
  return one_of(op, kOps);
}

class Selector {
 public:
  explicit Selector(FlatGraph& graph) : g_(graph) {}

  Expected<void> run() {
    const auto count = g_.nodes.size();
    dead_.assign(count, false);
    for (std::size_t n = 0; n < count; ++n) {
      const auto& node = g_.nodes[n];
      dead_[n] = node.is_call || writes_variable(node.op) || is_bookkeeping(node.op) || is_gradient(node);
    }
    cut_loops();
    if (g_.results.empty()) {
      // Optimisers work on under names of their own with what differentiation made: clipping, norms, averages.
      const auto before = dead_;
      prune_after_gradients();
      choose_results();
      if (g_.results.empty()) {  // a loss that reads gradients is all that there is
        dead_ = before;
        choose_results();
      }
    }
    if (g_.results.empty()) return bad_input("computes no result from its inputs", g_.file);
    if (const auto sorted = order(); !sorted) return sorted;
    fold_recurrent(g_);
    fold_patterns(g_);
    if (const auto sorted = order(); !sorted) return sorted;
    report_loops();
    return {};
  }

 private:
  /// A v1 loop goes Enter -> Merge -> Switch -> body -> NextIteration -> Merge, and leaves by Switch -> Exit. Once
  /// round it is straight: Enter -> Merge -> Switch -> body -> Exit.
  void cut_loops() {
    std::vector<std::vector<int>> readers(g_.nodes.size());
    const auto is = [&](int n, std::string_view op) {
      const std::string_view own = g_.nodes[static_cast<std::size_t>(n)].op;
      return own == op || (own.starts_with("Ref") && own.substr(3) == op);
    };
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      for (const auto& edge : g_.nodes[n].inputs) {
        if (is(edge.node, "Merge") || is(edge.node, "Switch"))
          readers[static_cast<std::size_t>(edge.node)].push_back(static_cast<int>(n));
      }
    }
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (!is(static_cast<int>(n), "Merge")) continue;
      auto& inputs = g_.nodes[n].inputs;
      const auto back =
          std::find_if(inputs.begin(), inputs.end(), [&](const Edge& e) { return is(e.node, "NextIteration"); });
      if (back == inputs.end()) continue;
      const auto& again = g_.nodes[static_cast<std::size_t>(back->node)];
      if (!again.inputs.empty()) {
        for (const int gate : readers[n]) {
          if (!is(gate, "Switch")) continue;
          for (const int leave : readers[static_cast<std::size_t>(gate)]) {
            auto& exit = g_.nodes[static_cast<std::size_t>(leave)];
            if (is(leave, "Exit") && exit.inputs.size() == 1) exit.inputs[0] = again.inputs[0];
          }
        }
      }
      cut_.push_back(static_cast<int>(n));
      inputs.erase(back);
    }
  }

  void prune_after_gradients() {
    std::vector<std::vector<int>> readers(g_.nodes.size());
    std::vector<int> pending;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      for (const auto& edge : g_.nodes[n].inputs)
        readers[static_cast<std::size_t>(edge.node)].push_back(static_cast<int>(n));
      if (is_gradient(g_.nodes[n])) pending.push_back(static_cast<int>(n));
    }
    while (!pending.empty()) {
      const auto n = static_cast<std::size_t>(pending.back());
      pending.pop_back();
      for (const int reader : readers[n]) {
        if (dead_[static_cast<std::size_t>(reader)]) continue;
        dead_[static_cast<std::size_t>(reader)] = true;
        pending.push_back(reader);
      }
    }
  }

  /// A Merge that was cut is worth a word if the network goes through it.
  void report_loops() {
    std::size_t loops = 0;
    std::string first;
    for (const int n : g_.order) {
      if (!std::binary_search(cut_.begin(), cut_.end(), n)) continue;
      if (loops++ == 0) first = g_.nodes[static_cast<std::size_t>(n)].name;
    }
    if (loops > 0)
      g_.warnings.push_back(std::to_string(loops) +
                            " back edges of loops are cut and their bodies counted once (first: '" + first + "')");
  }

  /// Ends of the forward part: read by nobody but training and reports.
  void choose_results() {
    const auto count = g_.nodes.size();
    std::vector<bool> read(count, false), feeds_update(count, false), data(count, false), weights(count, false);
    for (std::size_t n = 0; n < count; ++n) {
      const auto& node = g_.nodes[n];
      const bool updates = dead_[n] && (writes_variable(node.op) || node.op.starts_with("Save"));
      const auto mark = [&](int from) {
        if (!dead_[n] && !is_report_chain(n)) read[static_cast<std::size_t>(from)] = true;
        if (updates) feeds_update[static_cast<std::size_t>(from)] = true;
      };
      for (const auto& edge : node.inputs) mark(edge.node);
      for (const int call : node.read_calls) mark(call);
    }
    spread_origins(data, weights);
    std::vector<Edge> ends;
    bool any_weights = false;
    const auto consider = [&](Edge edge) {
      const auto from = static_cast<std::size_t>(edge.node);
      if (is_source(g_.nodes[from].op) || !data[from]) return;
      ends.push_back(edge);
      any_weights = any_weights || weights[from];
    };
    for (std::size_t n = 0; n < count; ++n) {
      const auto& node = g_.nodes[n];
      if (node.inlined || read[n] || feeds_update[n] || is_report_chain(n)) continue;
      if (!dead_[n]) consider({static_cast<int>(n), 0});
      if (!node.is_call || is_gradient(node)) continue;
      for (const auto& result : node.results) consider(result);
    }
    // Counters and last states that a loop leaves behind count only where there is nothing else.
    const auto leftover = [&](const Edge& e) { return g_.nodes[static_cast<std::size_t>(e.node)].op == "Exit"; };
    if (!std::all_of(ends.begin(), ends.end(), leftover)) std::erase_if(ends, leftover);
    for (const Edge end : ends) {
      if (!any_weights || weights[static_cast<std::size_t>(end.node)]) g_.results.push_back(end);
    }
  }

  /// Loop machinery that reads a value without using it for the network.
  bool is_report_chain(std::size_t n) const {
    const auto& op = g_.nodes[n].op;
    return op == "NextIteration" || op == "RefNextIteration" || op == "LoopCond" || op == "TensorArrayCloseV3";
  }

  /// For every node: does it depend on data, and on weights? To a fixed point, since loops may remain.
  void spread_origins(std::vector<bool>& data, std::vector<bool>& weights) const {
    const auto count = g_.nodes.size();
    std::vector<std::vector<int>> readers(count);
    std::vector<int> pending;
    for (std::size_t n = 0; n < count; ++n) {
      const auto& op = g_.nodes[n].op;
      for (const auto& edge : g_.nodes[n].inputs)
        readers[static_cast<std::size_t>(edge.node)].push_back(static_cast<int>(n));
      const auto* value = op == "Const" ? g_.nodes[n].attribute("value") : nullptr;
      const bool big = value && value->tensor && is_floating(value->tensor->type) && !value->tensor->shape.empty();
      weights[n] = big || op == "VariableV2" || op == "Variable" || op == "VarHandleOp" || op == kMissing;
      data[n] = !weights[n] && op != "Const" && g_.nodes[n].inputs.empty() && op.find("Random") == std::string::npos;
      if (data[n] || weights[n]) pending.push_back(static_cast<int>(n));
    }
    while (!pending.empty()) {
      const auto n = static_cast<std::size_t>(pending.back());
      pending.pop_back();
      for (const int reader : readers[n]) {
        const auto r = static_cast<std::size_t>(reader);
        if ((data[r] || !data[n]) && (weights[r] || !weights[n])) continue;
        data[r] = data[r] || data[n];
        weights[r] = weights[r] || weights[n];
        pending.push_back(reader);
      }
    }
  }

  /// What the results need, producers first (Kahn's algorithm, lowest index first).
  Expected<void> order() {
    const auto count = g_.nodes.size();
    g_.order.clear();
    std::vector<bool> live(count, false);
    std::vector<int> pending;
    for (const auto& edge : g_.results) pending.push_back(edge.node);
    while (!pending.empty()) {
      const auto n = static_cast<std::size_t>(pending.back());
      pending.pop_back();
      if (live[n]) continue;
      live[n] = true;
      for (const auto& edge : g_.nodes[n].inputs) pending.push_back(edge.node);
    }
    std::vector<std::vector<int>> readers(count);
    std::vector<int> missing(count, 0);
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    std::size_t total = 0;
    for (std::size_t n = 0; n < count; ++n) {
      if (!live[n]) continue;
      ++total;
      for (const auto& edge : g_.nodes[n].inputs)
        readers[static_cast<std::size_t>(edge.node)].push_back(static_cast<int>(n));
      missing[n] = static_cast<int>(g_.nodes[n].inputs.size());
      if (missing[n] == 0) ready.push(static_cast<int>(n));
    }
    while (!ready.empty()) {
      const int n = ready.top();
      ready.pop();
      g_.order.push_back(n);
      for (const int reader : readers[static_cast<std::size_t>(n)]) {
        if (--missing[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
      }
    }
    if (g_.order.size() == total) return {};
    for (std::size_t n = 0; n < count; ++n) {
      if (live[n] && missing[n] > 0) return bad_input("is part of a cycle", g_.place(g_.nodes[n]));
    }
    return {};
  }

  FlatGraph& g_;
  std::vector<bool> dead_;
  std::vector<int> cut_;  ///< Merge nodes of loops, ascending
};

}  // namespace

Expected<void> select_live(FlatGraph& graph) { return Selector(graph).run(); }

}  // namespace turnpoint::tensorflow
