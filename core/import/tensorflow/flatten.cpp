// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "core/import/tensorflow/flat_graph.h"

namespace turnpoint::tensorflow {

namespace {

constexpr std::size_t kMaxNodes = 250'000, kMaxEdges = 2'000'000;
constexpr int kMaxInlining = 32;
constexpr std::size_t kMaxNameBytes = std::size_t{64} << 20;

using Names = std::unordered_map<std::string_view, int>;

/// Name, output name and index of "a", "a:1" and, inside functions, "a:output:1".
struct Reference {
  std::string_view name, output;
  int index = 0;
};

std::optional<Reference> parse_reference(std::string_view text) {
  Reference result;
  const auto first = text.find(':');
  result.name = text.substr(0, first);
  if (first == std::string_view::npos) return result;
  auto rest = text.substr(first + 1);
  if (const auto second = rest.find(':'); second != std::string_view::npos) {
    result.output = rest.substr(0, second);
    rest = rest.substr(second + 1);
  } else if (rest.empty() || rest[0] < '0' || rest[0] > '9') {
    result.output = rest;
    return result;
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), result.index);
  if (error != std::errc() || end != rest.data() + rest.size() || result.index < 0 || result.index > 65535)
    return std::nullopt;
  return result;
}

/// The runtime's own wrappers of functions: their names say nothing about the network.
bool is_plain_call(std::string_view op) { return op == "PartitionedCall" || op == "StatefulPartitionedCall"; }

/// Not so for what hands values on, and for a loop that became one layer.
bool computes(const FlatNode& node) {
  for (const std::string_view op : {"Identity", "ReadVariableOp", "Const", "TensorListReserve"})
    if (node.op == op) return false;
  return node.op != kRecurrent && node.op != kJointRecurrent;
}

class Flattener {
 public:
  Flattener(std::shared_ptr<const GraphDef> def, const std::string& file) {
    graph_.def = std::move(def);
    graph_.file = file;
  }

  Expected<FlatGraph> run() {
    Names names;
    expand(needed(), names, "", false, 0);
    if (error_) return *error_;
    redirect();
    if (error_) return *error_;
    for (auto& node : graph_.nodes) {
      for (auto& edge : node.results) edge = resolved(edge);
      std::erase_if(node.results, [](const Edge& edge) { return edge.node < 0; });
    }
    if (graph_.def->outputs.empty()) return finish();
    for (const auto& output : graph_.def->outputs) {
      const auto reference = parse_reference(output);
      const auto found = reference ? names.find(reference->name) : names.end();
      if (found == names.end())
        return bad_input("its signature names an output '" + output + "' that no node makes", graph_.file);
      const Edge edge = resolved({found->second, reference->index});
      if (edge.node >= 0) graph_.results.push_back(edge);
    }
    return finish();
  }

 private:
  Expected<FlatGraph> finish() {
    if (const auto live = select_live(graph_); !live) return live.error();
    for (auto& note : notes_) {
      const bool live = std::any_of(graph_.order.begin(), graph_.order.end(), [&](int n) {
        const auto index = static_cast<std::size_t>(n);
        return index >= note.first && index < note.last && computes(graph_.nodes[index]);
      });
      if (live && graph_.warnings.size() < 100) graph_.warnings.push_back(std::move(note.text));
    }
    return std::move(graph_);
  }
  void fail(std::string what, std::string where) {
    if (!error_) error_ = bad_input(std::move(what), std::move(where));
  }
  std::string place(const std::string& name, const std::string& op) const {
    return graph_.file + ": node '" + name + "' (" + op + ")";
  }

  int add(FlatNode node) {
    if (graph_.nodes.size() >= kMaxNodes) {
      fail("has more than 250000 nodes once its functions are inlined", graph_.file);
      return -1;
    }
    name_bytes_ += node.name.size();
    if (name_bytes_ > kMaxNameBytes) fail("has more than 64 MB of names once its functions are inlined", graph_.file);
    graph_.nodes.push_back(std::move(node));
    return static_cast<int>(graph_.nodes.size()) - 1;
  }
  std::string unique(std::string name) {
    if (taken_.insert(name).second) return name;
    auto& next = suffix_[name];
    while (true) {
      auto candidate = name + "_" + std::to_string(++next);
      if (taken_.insert(candidate).second) return candidate;
    }
  }

  /// The nodes of the file; where it names its outputs, those that they depend on (a SavedModel holds the network once
  /// for every signature, and functions that save and restore it).
  std::vector<const NodeDef*> needed() const {
    const auto& def = *graph_.def;
    std::vector<const NodeDef*> result;
    std::unordered_map<std::string_view, std::size_t> index;
    std::vector<bool> wanted(def.nodes.size(), def.outputs.empty());
    std::vector<std::size_t> pending;
    for (std::size_t n = 0; n < def.nodes.size(); ++n) index.emplace(def.nodes[n].name, n);
    const auto want = [&](std::string_view text) {
      const auto found = index.find(text.substr(0, text.find(':')));
      if (found == index.end() || wanted[found->second]) return;
      wanted[found->second] = true;
      pending.push_back(found->second);
    };
    for (const auto& output : def.outputs) want(output);
    while (!pending.empty()) {
      const auto n = pending.back();
      pending.pop_back();
      for (const auto& input : def.nodes[n].inputs) want(input);
    }
    for (std::size_t n = 0; n < def.nodes.size(); ++n) {
      if (wanted[n]) result.push_back(&def.nodes[n]);
    }
    return result;
  }

  /// Adds `nodes`; `names` holds the arguments and then all of them.
  void expand(const std::vector<const NodeDef*>& nodes, Names& names, const std::string& prefix, bool in_function,
              int depth) {
    std::vector<int> made;
    made.reserve(nodes.size());
    for (const auto* def : nodes) {
      FlatNode node;
      node.name = unique(prefix + def->name);
      node.op = def->op;
      node.def = def;
      node.inlined = in_function;
      const int index = add(std::move(node));
      if (error_) return;
      made.push_back(index);
      if (!names.emplace(def->name, index).second && !in_function)
        return fail("two nodes have this name", place(def->name, def->op));
    }
    for (std::size_t k = 0; k < nodes.size() && !error_; ++k) connect(*nodes[k], made[k], names, in_function);
    for (std::size_t k = 0; k < nodes.size() && !error_; ++k) call(*nodes[k], made[k], prefix, depth);
  }

  Edge edge_of(const Reference& reference, const Names& names) const {
    const auto found = names.find(reference.name);
    if (found == names.end()) return {};
    const auto& node = graph_.nodes[static_cast<std::size_t>(found->second)];
    int base = 0;
    if (!reference.output.empty()) {
      const auto* function = function_of(node.def ? *node.def : NodeDef{});
      if (function && !is_plain_call(node.op)) {
        const auto& results = function->results;
        const auto at = std::find(results.begin(), results.end(), reference.output);
        base = at == results.end() ? 0 : static_cast<int>(at - results.begin());
      } else {
        base = output_base(node.op, reference.output);
      }
    }
    return {found->second, base + reference.index};
  }

  void connect(const NodeDef& def, int index, const Names& names, bool in_function) {
    std::vector<Edge> inputs;
    for (const auto& text : def.inputs) {
      if (text.starts_with('^')) continue;
      const auto& name = graph_.nodes[static_cast<std::size_t>(index)].name;
      if (++edges_ > kMaxEdges) return fail("has more than two million edges", graph_.file);
      const auto reference = parse_reference(text);
      if (!reference) return fail("its input '" + text + "' is no name of a tensor", place(name, def.op));
      Edge edge = edge_of(*reference, names);
      if (edge.node < 0 && in_function)
        return fail("reads '" + text + "', which nothing in its function makes", place(name, def.op));
      if (edge.node < 0) edge = missing(std::string(reference->name), name);
      if (error_) return;
      inputs.push_back(edge);
    }
    graph_.nodes[static_cast<std::size_t>(index)].inputs = std::move(inputs);
  }

  Edge missing(const std::string& name, const std::string& reader) {
    if (graph_.dangling++ == 0) graph_.first_dangling = "'" + name + "', read by '" + reader + "'";
    const auto [found, added] = missing_.emplace(name, -1);
    if (added) found->second = add_missing(name);
    return {found->second, 0};
  }

  int add_missing(const std::string& name) {
    FlatNode node;
    node.name = unique(name);
    node.op = kMissing;
    return add(std::move(node));
  }

  const FunctionDef* function_of(const NodeDef& def) const {
    const auto& functions = graph_.def->functions;
    if (const auto direct = functions.find(def.op); direct != functions.end()) return &direct->second;
    const char* key = is_plain_call(def.op)                             ? "f"
                      : def.op == "While" || def.op == "StatelessWhile" ? "body"
                      : def.op == "If" || def.op == "StatelessIf"       ? "then_branch"
                                                                        : nullptr;
    if (def.op == "Case" || def.op == "StatelessCase") {
      const auto branches = def.attributes.find("branches");
      if (branches == def.attributes.end() || branches->second.functions.empty()) return nullptr;
      const auto found = functions.find(branches->second.functions.front());
      return found == functions.end() ? nullptr : &found->second;
    }
    if (!key) return nullptr;
    const auto attribute = def.attributes.find(key);
    if (attribute == def.attributes.end()) return nullptr;
    const auto found = functions.find(attribute->second.function);
    return found == functions.end() ? nullptr : &found->second;
  }

  void call(const NodeDef& def, int index, const std::string& prefix, int depth) {
    const auto* function = function_of(def);
    const bool branch = def.op == "If" || def.op == "StatelessIf" || def.op == "Case" || def.op == "StatelessCase";
    const bool loop = def.op == "While" || def.op == "StatelessWhile";
    const auto name = graph_.nodes[static_cast<std::size_t>(index)].name;
    if (!function) {
      if (branch || loop || is_plain_call(def.op))
        fail("calls a function that the file does not hold", place(name, def.op));
      return;
    }
    if (depth >= kMaxInlining || !active_.insert(function->name).second)
      return fail(depth >= kMaxInlining ? "functions call each other more than 32 deep"
                                        : "function '" + function->name + "' calls itself",
                  place(name, def.op));
    const auto first = graph_.nodes.size();
    // Bodies of branches and loops are often named with the path of their call already.
    const bool full_names = std::any_of(function->nodes.begin(), function->nodes.end(),
                                        [&](const NodeDef& own) { return own.name.starts_with(def.name + "/"); });
    inline_body(*function, index, branch ? 1 : 0, is_plain_call(def.op) || full_names ? prefix : name + "/", depth);
    active_.erase(function->name);
    if (loop) notes_.push_back({"the body of the loop '" + name + "' is counted once", first, graph_.nodes.size()});
    if (branch) notes_.push_back({"of the branches of '" + name + "' the first is taken", first, graph_.nodes.size()});
  }

  void inline_body(const FunctionDef& function, int index, std::size_t skipped, const std::string& prefix, int depth) {
    Names inner;
    const auto caller = graph_.nodes[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < function.arguments.size(); ++i) {
      FlatNode argument;
      argument.name = unique(prefix + function.arguments[i]);
      argument.op = "Identity";
      argument.inlined = true;
      if (i + skipped < caller.inputs.size()) argument.inputs.push_back(caller.inputs[i + skipped]);
      const int made = add(std::move(argument));
      if (error_) return;
      inner[function.arguments[i]] = made;
    }
    std::vector<const NodeDef*> body;
    for (const auto& def : function.nodes) body.push_back(&def);
    expand(body, inner, prefix, true, depth + 1);
    std::vector<Edge> results;
    for (const auto& result : function.results) {
      const auto value = function.returns.find(result);
      const auto reference = parse_reference(value == function.returns.end() ? result : value->second);
      const Edge edge = reference && !error_ ? edge_of(*reference, inner) : Edge{};
      if (edge.node < 0)
        return fail("function '" + function.name + "' never makes its result '" + result + "'",
                    place(caller.name, caller.op));
      results.push_back(edge);
    }
    auto& node = graph_.nodes[static_cast<std::size_t>(index)];
    node.results = std::move(results);
    node.is_call = true;
  }

  /// Calls are nested at most 32 deep and results point inwards, so this ends; arguments are nodes of their own.
  Edge resolved(Edge edge) {
    for (int hops = 0; edge.node >= 0 && hops < 4 * kMaxInlining; ++hops) {
      const auto& node = graph_.nodes[static_cast<std::size_t>(edge.node)];
      if (!node.is_call) return edge;
      if (static_cast<std::size_t>(edge.port) >= node.results.size()) return {};
      edge = node.results[static_cast<std::size_t>(edge.port)];
    }
    return {};
  }

  void redirect() {
    for (auto& node : graph_.nodes) {
      for (auto& edge : node.inputs) {
        if (graph_.nodes[static_cast<std::size_t>(edge.node)].is_call) node.read_calls.push_back(edge.node);
        const Edge target = resolved(edge);
        if (target.node < 0)
          return fail("reads an output of a call that its function does not have", graph_.place(node));
        edge = target;
      }
    }
  }

  /// A warning that counts only if one of these nodes is part of the network.
  struct Note {
    std::string text;
    std::size_t first, last;
  };

  FlatGraph graph_;
  std::vector<Note> notes_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> suffix_, missing_;
  std::unordered_set<std::string> active_;
  std::size_t edges_ = 0, name_bytes_ = 0;
  std::optional<Error> error_;
};

}  // namespace

const Attribute* FlatNode::attribute(std::string_view key) const {
  if (!def) return nullptr;
  const auto found = def->attributes.find(key);
  return found == def->attributes.end() ? nullptr : &found->second;
}
std::int64_t FlatNode::integer(std::string_view key, std::int64_t otherwise) const {
  const auto* a = attribute(key);
  return a && a->i ? *a->i : otherwise;
}
bool FlatNode::flag(std::string_view key, bool otherwise) const {
  const auto* a = attribute(key);
  return a && a->b ? *a->b : otherwise;
}
std::string FlatNode::text(std::string_view key, std::string_view otherwise) const {
  const auto* a = attribute(key);
  return a && a->s ? *a->s : std::string(otherwise);
}
std::vector<std::int64_t> FlatNode::integers(std::string_view key) const {
  const auto* a = attribute(key);
  return a ? a->integers : std::vector<std::int64_t>();
}

std::string FlatGraph::place(const FlatNode& node) const {
  return file + ": node '" + node.name + "' (" + node.op + ")";
}

int output_base(std::string_view op, std::string_view output) {
  struct Row {
    std::string_view op, output;
    int port;
  };
  static constexpr Row kRows[] = {{"FusedBatchNorm", "batch_mean", 1},
                                  {"FusedBatchNorm", "batch_variance", 2},
                                  {"FusedBatchNorm", "reserve_space_1", 3},
                                  {"FusedBatchNorm", "reserve_space_2", 4},
                                  {"FusedBatchNorm", "reserve_space_3", 5},
                                  {"SoftmaxCrossEntropyWithLogits", "backprop", 1},
                                  {"SparseSoftmaxCrossEntropyWithLogits", "backprop", 1},
                                  {"TopK", "indices", 1},
                                  {"Unique", "idx", 1},
                                  {"Switch", "output_true", 1},
                                  {"Merge", "value_index", 1},
                                  {"MaxPoolWithArgmax", "argmax", 1},
                                  {"Moments", "variance", 1},
                                  {"TensorListPopBack", "tensor", 1},
                                  {"TensorArray", "flow", 1},
                                  {"BlockLSTM", "cs", 1},
                                  {"BlockLSTM", "f", 2},
                                  {"BlockLSTM", "o", 3},
                                  {"BlockLSTM", "ci", 4},
                                  {"BlockLSTM", "co", 5},
                                  {"BlockLSTM", "h", 6},
                                  {"LSTMBlockCell", "cs", 1},
                                  {"LSTMBlockCell", "f", 2},
                                  {"LSTMBlockCell", "o", 3},
                                  {"LSTMBlockCell", "ci", 4},
                                  {"LSTMBlockCell", "co", 5},
                                  {"LSTMBlockCell", "h", 6}};
  while (op.size() > 2 && op[op.size() - 2] == 'V' && op.back() >= '2' && op.back() <= '9') op.remove_suffix(2);
  for (const auto& row : kRows) {
    if (row.op == op && row.output == output) return row.port;
  }
  return 0;
}

Expected<FlatGraph> flatten(std::shared_ptr<const GraphDef> def, const std::string& file) {
  return Flattener(std::move(def), file).run();
}

}  // namespace turnpoint::tensorflow
