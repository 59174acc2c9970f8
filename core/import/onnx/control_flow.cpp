// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: the graphs they hold become part of the graph around them.
#include <fmt/format.h>

#include <algorithm>

#include "core/import/onnx/graph_builder.h"

namespace turnpoint::onnx {

namespace {

constexpr std::size_t kMaxCopiedNames = 2'000'000;
constexpr std::size_t kMaxUnrolledNodes = 100'000;

/// Nodes of a graph and of the graphs inside it, each once.
std::size_t size_of(const GraphProto& graph) {
  std::size_t count = graph.nodes.size();
  for (const auto& node : graph.nodes)
    for (const auto& [key, attribute] : node.attributes)
      if (attribute.graph) count += size_of(*attribute.graph);
  return count;
}

/// Whether the body of a loop hands its condition on, or says "go on" whatever happens.
bool always_goes_on(const GraphProto& body) {
  if (body.outputs.empty()) return true;
  std::string name = body.outputs[0].name;
  for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
    if (node->outputs.size() != 1 || node->outputs[0] != name) continue;
    if (node->kind == "Constant") return true;
    if (node->kind != "Identity" && node->kind != "Cast") return false;
    if (node->inputs.empty()) return false;
    name = node->inputs[0];
  }
  const auto stored = [&](const TensorProto& tensor) { return tensor.name == name; };
  return (body.inputs.size() > 1 && body.inputs[1].name == name) ||
         std::any_of(body.initializers.begin(), body.initializers.end(), stored);
}

}  // namespace

std::string GraphBuilder::Place::label() const {
  return prefix + (!source.name.empty() ? source.name : source.outputs.empty() ? source.kind : source.outputs.front());
}

const GraphProto* GraphBuilder::body_of(const Place& at, const char* attribute) {
  const auto found = at.source.attributes.find(attribute);
  if (found != at.source.attributes.end() && found->second.graph) return found->second.graph.get();
  fail(std::string("lacks its graph '") + attribute + "'", graph_.place(at.node));
  return nullptr;
}

bool GraphBuilder::may_copy(const Names& names) {
  copied_names_ += names.size();
  if (copied_names_ > kMaxCopiedNames) fail("has too many branches and loops for its size", graph_.file);
  return !error_;
}

int GraphBuilder::output_of(const Place& at, const GraphProto& body, std::size_t index, const Names& names) {
  const auto found = index < body.outputs.size() ? names.find(body.outputs[index].name) : names.end();
  if (found != names.end()) return found->second;
  fail(fmt::format("its graph never makes output {}", index), graph_.place(at.node));
  return -1;
}

/// Puts both branches before the If node, which from now on reads its condition and every result of both.
bool GraphBuilder::inline_branches(const Place& at, Node& node, const Names& names) {
  if (node.input(0) < 0) return fail("has no condition", graph_.place(node)), false;
  for (const bool then : {true, false}) {
    const GraphProto* branch = body_of(at, then ? "then_branch" : "else_branch");
    if (!branch || !may_copy(names)) return false;
    Names inner = names;  // a branch sees everything around it and hides nothing afterwards
    add_initializers(*branch, inner);
    guards_.emplace_back(node.inputs[0], then);
    add_nodes(branch->nodes, inner, at.label() + (then ? "/then/" : "/else/"), at.caller, at.depth + 1);
    guards_.pop_back();
    for (std::size_t k = 0; k < at.source.outputs.size() && !error_; ++k)
      node.inputs.push_back(output_of(at, *branch, k, inner));
    if (error_) return false;
  }
  return true;
}

std::int64_t GraphBuilder::affordable(const Place& at, const GraphProto& body, std::int64_t trips) {
  const std::size_t size = std::max<std::size_t>(1, size_of(body));
  const std::size_t left = kMaxUnrolledNodes - std::min(unrolled_nodes_, kMaxUnrolledNodes);
  if (trips > 1 && static_cast<std::uint64_t>(trips) > left / size) {
    graph_.warnings.push_back(fmt::format("the {} trips of '{}' ({}) are too many to lay out: its body is counted once",
                                          trips, at.label(), at.source.kind));
    trips = 1;
  }
  unrolled_nodes_ += static_cast<std::size_t>(trips) * size;
  return trips;
}

std::int64_t GraphBuilder::loop_trips(const Place& at, const GraphProto& body) {
  const auto scalar = [&](std::size_t i) -> std::optional<std::int64_t> {
    const ConstantPtr constant = graph_.constant(at.node.input(i));
    if (!constant || constant->integers.size() != 1) return std::nullopt;
    return constant->integers[0];
  };
  const auto limit = scalar(0), condition = scalar(1);
  if ((condition && *condition == 0) || (limit && *limit <= 0)) return 0;
  constexpr std::int64_t kNoLimit = std::int64_t(1) << 31;  // exporters write the largest integer for "while"
  if (!limit || *limit >= kNoLimit) {
    graph_.warnings.push_back(
        fmt::format("how often '{}' (Loop) runs is not constant: its body is counted once", at.label()));
    return affordable(at, body, 1);
  }
  const std::int64_t trips = affordable(at, body, *limit);
  if (trips == *limit && trips > 1 && !always_goes_on(body))
    graph_.warnings.push_back(
        fmt::format("'{}' (Loop) may end early: all its {} trips are counted", at.label(), trips));
  return trips;
}

void GraphBuilder::add_trip(const Place& at, const GraphProto& body, Names& names, std::int64_t trip) {
  add_nodes(body.nodes, names, fmt::format("{}/{}/", at.label(), trip), at.caller, at.depth + 1);
}

void GraphBuilder::inline_loop(const Place& at, Names& names) {
  const GraphProto* body = body_of(at, "body");
  if (!body || !may_copy(names)) return;
  const std::size_t carried = at.node.inputs.size() > 2 ? at.node.inputs.size() - 2 : 0;
  if (body->inputs.size() < 2 + carried || body->outputs.size() < 1 + carried)
    return fail("its body takes or makes too few values", graph_.place(at.node));
  const std::size_t stacks = body->outputs.size() - 1 - carried;
  const std::int64_t trips = loop_trips(at, *body);
  std::vector<int> values(at.node.inputs.begin() + (carried ? 2 : 0),
                          at.node.inputs.begin() + (carried ? 2 + carried : 0));
  std::vector<std::vector<int>> parts(stacks);
  Names inner = names;
  add_initializers(*body, inner);
  int condition = at.node.input(1) >= 0 ? at.node.input(1) : made_constant(1, at.label() + "/go_on");
  for (std::int64_t trip = 0; trip < trips && !error_; ++trip) {
    for (const auto& node : body->nodes)
      for (const auto& output : node.outputs) inner.erase(output);  // of the trip before
    inner[body->inputs[0].name] = made_constant(trip, fmt::format("{}/trip{}", at.label(), trip));
    inner[body->inputs[1].name] = condition;
    for (std::size_t i = 0; i < carried; ++i) inner[body->inputs[2 + i].name] = values[i];
    add_trip(at, *body, inner, trip);
    if (error_) return;
    condition = output_of(at, *body, 0, inner);
    for (std::size_t i = 0; i < carried; ++i) values[i] = output_of(at, *body, 1 + i, inner);
    for (std::size_t k = 0; k < stacks; ++k) parts[k].push_back(output_of(at, *body, 1 + carried + k, inner));
  }
  for (std::size_t i = 0; i < at.source.outputs.size() && !error_; ++i) {
    const std::string& name = at.source.outputs[i];
    if (name.empty()) continue;
    if (i >= carried + stacks) return fail("has more outputs than its body", graph_.place(at.node));
    if (i >= carried && trips == 0) return fail("never runs, so it makes no '" + name + "'", graph_.place(at.node));
    names[name] = i < carried ? values[i] : stacked(parts[i - carried], 0, at.label() + "/" + name);
  }
}

std::vector<std::int64_t> GraphBuilder::scan_axes(const Place& at, const char* attribute, std::size_t count) {
  auto axes = at.node.integers(attribute);
  if (!axes.empty() && axes.size() != count)
    fail(std::string("lists the wrong number of ") + attribute, graph_.place(at.node));
  axes.resize(count, 0);
  return axes;
}

/// Elements along the scanned axes, from the file's own declarations; 0: not known.
std::int64_t GraphBuilder::scan_length(const Place& at, std::size_t first, const std::vector<std::int64_t>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (at.node.input(first + i) < 0) continue;
    const ValueNode& value = graph_.values[at.node.inputs[first + i]];
    std::vector<std::int64_t> shape;
    const ValueInfo* info = value.input;
    if (const auto found = declared_.find(value.name); !info && at.depth == 0 && found != declared_.end())
      info = found->second;
    if (value.initializer)
      shape = value.initializer->dims;
    else if (info && info->has_shape)
      for (const Dimension& dimension : info->shape) shape.push_back(dimension.value);
    const std::int64_t axis = axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(shape.size()) : axes[i];
    if (axis >= 0 && axis < static_cast<std::int64_t>(shape.size()) && shape[static_cast<std::size_t>(axis)] > 0)
      return shape[static_cast<std::size_t>(axis)];
  }
  return 0;
}

void GraphBuilder::inline_scan(const Place& at, Names& names) {
  if (graph_.opset < 9)
    return fail("is a Scan of opset 8, which no longer exists: export with opset 9 or later", graph_.place(at.node));
  const GraphProto* body = body_of(at, "body");
  if (!body || !may_copy(names)) return;
  const std::int64_t wanted = at.node.integer("num_scan_inputs", -1);
  const auto inputs = at.node.inputs.size();
  if (wanted < 1 || wanted > static_cast<std::int64_t>(inputs) || body->inputs.size() != inputs)
    return fail("its body takes another number of values than it is given", graph_.place(at.node));
  const auto scanned = static_cast<std::size_t>(wanted), states = inputs - scanned;
  if (body->outputs.size() < states) return fail("its body makes too few values", graph_.place(at.node));
  const std::size_t stacks = body->outputs.size() - states;
  const auto axes = scan_axes(at, "scan_input_axes", scanned),
             backwards = scan_axes(at, "scan_input_directions", scanned);
  const auto out_axes = scan_axes(at, "scan_output_axes", stacks),
             out_backwards = scan_axes(at, "scan_output_directions", stacks);
  if (error_) return;
  const std::int64_t length = scan_length(at, states, axes);
  if (length == 0)
    graph_.warnings.push_back(
        fmt::format("how often '{}' (Scan) runs is not constant: its body is counted once", at.label()));
  const std::int64_t trips = affordable(at, *body, std::max<std::int64_t>(1, length));

  std::vector<int> values(at.node.inputs.begin(), at.node.inputs.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<std::vector<int>> parts(stacks);
  Names inner = names;
  add_initializers(*body, inner);
  for (std::int64_t trip = 0; trip < trips && !error_; ++trip) {
    for (const auto& node : body->nodes)
      for (const auto& output : node.outputs) inner.erase(output);  // of the trip before
    const std::string label = fmt::format("{}/{}", at.label(), trip);
    for (std::size_t i = 0; i < states; ++i) inner[body->inputs[i].name] = values[i];
    for (std::size_t i = 0; i < scanned; ++i) {
      const int index = made_constant(backwards[i] ? trips - 1 - trip : trip, fmt::format("{}/index{}", label, i));
      AttributeMap attributes;
      attributes["axis"].i = axes[i];
      const std::string& name = body->inputs[states + i].name;
      inner[name] = made_node("Gather", label + "/" + name, {at.node.inputs[states + i], index}, std::move(attributes));
    }
    add_trip(at, *body, inner, trip);
    if (error_) return;
    for (std::size_t i = 0; i < states; ++i) values[i] = output_of(at, *body, i, inner);
    for (std::size_t k = 0; k < stacks; ++k) parts[k].push_back(output_of(at, *body, states + k, inner));
  }
  for (std::size_t i = 0; i < at.source.outputs.size() && !error_; ++i) {
    const std::string& name = at.source.outputs[i];
    if (name.empty()) continue;
    if (i >= states + stacks) return fail("has more outputs than its body", graph_.place(at.node));
    if (i >= states && out_backwards[i - states]) std::reverse(parts[i - states].begin(), parts[i - states].end());
    names[name] = i < states ? values[i] : stacked(parts[i - states], out_axes[i - states], at.label() + "/" + name);
  }
}

int GraphBuilder::made_constant(std::int64_t value, const std::string& name) {
  auto tensor = std::make_shared<TensorProto>();
  tensor->name = name;
  tensor->type = ElementType::i64;
  tensor->data = std::make_shared<const Constant>(Constant{ElementType::i64, {}, {value}, {}});
  AttributeMap attributes;
  attributes["value"].tensor = std::move(tensor);
  return made_node("Constant", name, {}, std::move(attributes));
}

int GraphBuilder::made_node(std::string kind, std::string name, std::vector<int> inputs, AttributeMap attributes) {
  graph_.made_attributes.push_back(std::move(attributes));
  Names scope;
  const int value = define(scope, name);
  graph_.values[value].producer = static_cast<int>(graph_.nodes.size());
  graph_.nodes.push_back(
      {std::move(name), std::move(kind), "", std::move(inputs), {value}, &graph_.made_attributes.back(), guards_});
  return value;
}

int GraphBuilder::stacked(const std::vector<int>& parts, std::int64_t axis, const std::string& name) {
  std::vector<int> raised;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    AttributeMap attributes;
    attributes["axes"].ints = {axis};
    raised.push_back(made_node("Unsqueeze", fmt::format("{}/{}", name, i), {parts[i]}, std::move(attributes)));
  }
  if (raised.size() == 1) return raised[0];
  AttributeMap attributes;
  attributes["axis"].i = axis;
  return made_node("Concat", name, std::move(raised), std::move(attributes));
}

}  // namespace turnpoint::onnx
