// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/graph_builder.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <queue>

namespace turnpoint::onnx {

namespace {

/// "n12" -> "n", "Conv_3" -> "Conv_", "/layer1/Conv" -> itself.
std::string_view without_number(std::string_view name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

/// Numbers alone, all alike whatever the node does ("n0", "n1", ...), tell nobody anything: "Conv 12" does. Names that
/// tell kinds or layers apart stay.
void name_by_kind(std::vector<Node>& nodes) {
  constexpr std::size_t kFew = 8;
  constexpr std::size_t kLongestPrefix = 5;
  std::vector<Node*> named;  // a constant is called after the weight that it makes
  for (Node& node : nodes)
    if (!node.kind.starts_with("Constant")) named.push_back(&node);
  if (named.size() < kFew) return;
  const std::string prefix(without_number(named.front()->name));
  const std::string& kind = named.front()->kind;
  const bool kinds = std::any_of(named.begin(), named.end(), [&](const Node* node) { return node->kind != kind; });
  const bool alike = std::all_of(named.begin(), named.end(), [&](const Node* node) {
    return without_number(node->name) == prefix && node->name.size() > prefix.size();
  });
  if (!kinds || !alike || prefix.size() > kLongestPrefix || prefix.find('/') != std::string::npos) return;
  std::map<std::string, int> counted;
  for (Node* node : named) node->name = fmt::format("{} {}", node->kind, ++counted[node->kind]);
}


constexpr std::size_t kMaxNodes = 500'000;
constexpr int kMaxInlining = 16;

}  // namespace

GraphBuilder::GraphBuilder(std::shared_ptr<const ModelProto> proto, const std::string& file) {
  graph_.proto = std::move(proto);
  graph_.file = file;
}

Expected<std::shared_ptr<const Graph>> GraphBuilder::run() {
  const auto& source = graph_.proto->graph;
  const auto opset = graph_.proto->opsets.find("");
  graph_.opset = opset == graph_.proto->opsets.end() ? (graph_.proto->opsets.empty() ? 1 : 17) : opset->second;
  for (const auto& function : graph_.proto->functions) functions_[{function.domain, function.name}] = &function;
  Names names;
  for (const auto* list : {&source.values, &source.inputs})
    for (const auto& info : *list) declared_[info.name] = &info;
  add_initializers(source, names);
  for (const auto& input : source.inputs) {
    if (names.count(input.name)) continue;  // old files list their weights among the inputs
    const int value = define(names, input.name);
    graph_.values[value].input = &input;
    graph_.inputs.push_back(value);
  }
  add_nodes(source.nodes, names, "", nullptr, 0);
  if (error_) return *error_;
  resolve_results(names);
  if (error_) return *error_;
  for (const auto* list : {&source.values, &source.outputs}) {
    for (const auto& info : *list) {
      if (const auto found = names.find(info.name); found != names.end()) graph_.values[found->second].declared = &info;
    }
  }
  if (!sort()) return *error_;
  fold_patterns(graph_);
  drop_dead();
  name_by_kind(graph_.nodes);
  return std::make_shared<const Graph>(std::move(graph_));
}

void GraphBuilder::fail(std::string what, std::string where) {
  if (!error_) error_ = bad_input(std::move(what), std::move(where));
}

int GraphBuilder::define(Names& names, const std::string& name) {
  graph_.values.push_back({});
  graph_.values.back().name = name;
  const int value = static_cast<int>(graph_.values.size() - 1);
  names[name] = value;
  return value;
}

void GraphBuilder::add_initializers(const GraphProto& graph, Names& names) {
  for (const auto& tensor : graph.initializers) graph_.values[define(names, tensor.name)].initializer = &tensor;
}

const FunctionProto* GraphBuilder::function_of(const NodeProto& node) const {
  const auto found = functions_.find({node.domain, node.kind});
  return found == functions_.end() ? nullptr : found->second;
}

void GraphBuilder::add_nodes(const std::vector<NodeProto>& nodes, Names& names, const std::string& prefix,
                             const AttributeMap* caller, int depth) {
  std::vector<std::pair<std::size_t, std::size_t>> pending;  // inputs that a later node may still make
  std::vector<std::string> pending_names;
  for (const auto& source : nodes) {
    if (error_) return;
    if (graph_.nodes.size() >= kMaxNodes) return fail("has more than half a million nodes", graph_.file);
    Node node{prefix + source.name, source.kind, source.domain, {}, {}, &source.attributes, guards_};
    std::vector<std::pair<std::size_t, std::string>> unknown;
    for (const auto& input : source.inputs) {
      const auto found = input.empty() ? names.end() : names.find(input);
      if (!input.empty() && found == names.end()) unknown.emplace_back(node.inputs.size(), input);
      node.inputs.push_back(found == names.end() ? -1 : found->second);
    }
    if (caller) resolve_references(node, *caller);
    if (const auto* function = function_of(source)) {
      if (!unknown.empty())
        return fail("reads '" + unknown.front().second + "', which nothing produces",
                    graph_.file + ": node '" + node.name + "'");
      inline_function(*function, source, node, names, depth);
      continue;
    }
    const bool standard = source.domain.empty() || source.domain == "ai.onnx";
    const Place at{source, node, prefix, caller, depth};
    if (standard && (source.kind == "If" || source.kind == "Loop" || source.kind == "Scan")) {
      if (!unknown.empty())
        return fail("reads '" + unknown.front().second + "', which nothing produces", graph_.place(node));
      if (depth >= kMaxInlining) return fail("graphs are nested more than 16 deep", graph_.place(node));
      if (source.kind == "Loop") inline_loop(at, names);
      if (source.kind == "Scan") inline_scan(at, names);
      if (source.kind != "If") continue;
      if (!inline_branches(at, node, names)) return;
    }
    // A weight that the body of a loop or function holds is one weight, however often the body is met.
    const bool stored = standard && source.kind == "Constant" && node.attributes == &source.attributes;
    if (stored) {
      node.guards.clear();
      const auto met = constants_.find(&source);
      if (met != constants_.end() && met->second.size() == source.outputs.size()) {
        for (std::size_t i = 0; i < source.outputs.size(); ++i) names[source.outputs[i]] = met->second[i];
        continue;
      }
    }
    for (auto& [slot, name] : unknown) {
      pending.emplace_back(graph_.nodes.size(), slot);
      pending_names.push_back(std::move(name));
    }
    for (const auto& output : source.outputs) {
      node.outputs.push_back(output.empty() ? -1 : define(names, output));
      if (!output.empty()) graph_.values.back().producer = static_cast<int>(graph_.nodes.size());
    }
    if (stored) constants_[&source] = node.outputs;
    if (node.name.empty())
      node.name =
          source.outputs.empty() || source.outputs.front().empty() ? node.kind : prefix + source.outputs.front();
    graph_.nodes.push_back(std::move(node));
  }
  for (std::size_t k = 0; k < pending.size() && !error_; ++k) {
    auto& node = graph_.nodes[pending[k].first];
    const auto found = names.find(pending_names[k]);
    if (found == names.end())
      return fail("reads '" + pending_names[k] + "', which nothing produces", graph_.place(node));
    node.inputs[pending[k].second] = found->second;
  }
}

void GraphBuilder::resolve_references(Node& node, const AttributeMap& caller) {
  bool any = false;
  for (const auto& [key, attribute] : *node.attributes) any = any || !attribute.reference.empty();
  if (!any) return;
  AttributeMap resolved;
  for (const auto& [key, attribute] : *node.attributes) {
    if (attribute.reference.empty()) {
      resolved[key] = attribute;
    } else if (const auto found = caller.find(attribute.reference); found != caller.end()) {
      resolved[key] = found->second;
    }
  }
  graph_.made_attributes.push_back(std::move(resolved));
  node.attributes = &graph_.made_attributes.back();
}

void GraphBuilder::inline_function(const FunctionProto& function, const NodeProto& call, const Node& node, Names& names,
                                   int depth) {
  if (depth >= kMaxInlining)
    return fail("functions call each other more than 16 deep", graph_.file + ": function '" + function.name + "'");
  Names inner;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    if (node.input(i) >= 0) inner[function.inputs[i]] = node.inputs[i];
  }
  const std::string label = !node.name.empty() ? node.name : call.outputs.empty() ? call.kind : call.outputs.front();
  add_nodes(function.nodes, inner, label + "/", node.attributes, depth + 1);
  for (std::size_t i = 0; i < call.outputs.size() && i < function.outputs.size() && !error_; ++i) {
    const auto found = inner.find(function.outputs[i]);
    if (found == inner.end())
      return fail("function '" + function.name + "' never makes its output '" + function.outputs[i] + "'",
                  graph_.place(node));
    if (!call.outputs[i].empty()) names[call.outputs[i]] = found->second;
  }
}

void GraphBuilder::resolve_results(const Names& names) {
  for (const auto& output : graph_.proto->graph.outputs) {
    const auto found = names.find(output.name);
    if (found == names.end()) return fail("result '" + output.name + "' is produced by no node", graph_.file);
    graph_.values[found->second].result = true;
    graph_.results.push_back(found->second);
  }
  if (graph_.results.empty()) fail("declares no results", graph_.file);
}

/// Kahn's algorithm, lowest index first, so that a file in order stays in order.
bool GraphBuilder::sort() {
  const auto count = graph_.nodes.size();
  std::vector<int> missing(count, 0);
  for (std::size_t n = 0; n < count; ++n) {
    const auto read = [&](int value) {
      if (value < 0) return;
      graph_.values[value].consumers.push_back(static_cast<int>(n));
      if (graph_.values[value].producer >= 0) ++missing[n];
    };
    for (const int value : graph_.nodes[n].inputs) read(value);
    for (const auto& [condition, then] : graph_.nodes[n].guards) read(condition);
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t n = 0; n < count; ++n) {
    if (missing[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<int> order, place(count, -1);
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    place[n] = static_cast<int>(order.size());
    order.push_back(n);
    for (const int value : graph_.nodes[n].outputs) {
      if (value < 0) continue;
      for (const int consumer : graph_.values[value].consumers) {
        if (--missing[consumer] == 0) ready.push(consumer);
      }
    }
  }
  for (std::size_t n = 0; n < count; ++n) {
    if (place[n] < 0) return fail("is part of a cycle", graph_.place(graph_.nodes[n])), false;
  }
  reorder(order);
  return true;
}

/// Keeps the nodes that `order` lists, in that order; indices in values follow.
void GraphBuilder::reorder(const std::vector<int>& order) {
  std::vector<int> place(graph_.nodes.size(), -1);
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (const int n : order) {
    place[n] = static_cast<int>(nodes.size());
    nodes.push_back(std::move(graph_.nodes[n]));
  }
  graph_.nodes = std::move(nodes);
  for (auto& value : graph_.values) {
    if (value.producer >= 0) value.producer = place[value.producer];
    std::vector<int> consumers;
    for (const int consumer : value.consumers) {
      if (place[consumer] >= 0) consumers.push_back(place[consumer]);
    }
    value.consumers = std::move(consumers);
  }
}

void GraphBuilder::drop_dead() {
  std::vector<bool> live(graph_.nodes.size(), false);
  for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
    const auto& node = graph_.nodes[n];
    for (const int value : node.outputs) {
      if (value < 0) continue;
      const auto& v = graph_.values[value];
      live[n] = live[n] || v.result;
      for (const int consumer : v.consumers) live[n] = live[n] || live[consumer];
    }
  }
  std::vector<int> order;
  for (std::size_t n = 0; n < live.size(); ++n) {
    if (live[n]) order.push_back(static_cast<int>(n));
  }
  reorder(order);
}

}  // namespace turnpoint::onnx
