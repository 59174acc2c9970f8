// SPDX-License-Identifier: Apache-2.0
#include "core/import/torch/lowering.h"

#include <algorithm>

namespace turnpoint::torch_program {

namespace {

/// Far above any network, and what keeps a hostile file small.
constexpr std::size_t kMaxOperators = 400'000;

}  // namespace

const Lowering::Table& Lowering::handlers() {
  static const Table table = [] {
    Table t;
    add_layers(t);
    add_views(t);
    add_pointwise(t);
    return t;
  }();
  return table;
}

Expected<Lowered> Lowering::run() {
  graphs_.push_back(&program_.graph);
  add_inputs();
  visit(program_.graph);
  if (!error_ && !unknown_.empty()) {
    std::string names;
    for (const auto& name : unknown_) names += (names.empty() ? "" : ", ") + name;
    error_ = bad_input("has operators that are not supported: " + names, file_);
    error_->hint = "export the same module with torch.onnx.export and open what it writes";
  }
  std::size_t results = 0;
  for (const auto& name : program_.results)
    if (const auto found = values_.find(name); !error_ && found != values_.end()) {
      out_.output(found->second);
      ++results;
    }
  if (!error_ && results == 0) error_ = bad_input("computes no result from its inputs", file_);
  if (error_) return *error_;
  return Lowered{out_.bytes(), std::move(buffers_)};
}

/// Parameters and buffers by their path in the module; the first dimension of the first tensor of data is the batch.
void Lowering::add_inputs() {
  std::map<std::string, std::string> symbols;
  for (const auto* kind : {&program_.parameters, &program_.buffers}) {
    for (const auto& [name, path] : *kind) {
      const auto* own = meta(name);
      if (!own) continue;
      tensorflow::TensorValue tensor{own->type, {}, false, {}, {}};
      for (const Size& size : own->sizes) tensor.shape.push_back(size.value);
      if (std::any_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t size) { return size < 0; })) {
        error_ = bad_input("the size of '" + path + "' is not fixed", file_);
        return;
      }
      const std::string value = values_[name] = out_.unique(path.empty() ? name : path);
      out_.initializer(value, tensor);
      (kind == &program_.buffers ? buffers_ : trained_).insert(value);
    }
  }
  for (const auto& name : program_.data) {
    const auto* own = meta(name);
    if (!own) continue;
    tensorflow::Shape shape;
    Names names;
    for (std::size_t d = 0; d < own->sizes.size(); ++d) {
      const Size& size = own->sizes[d];
      shape.push_back(size.value > 0 ? size.value : -1);
      std::string symbol = size.symbol.empty() ? name + ":" + std::to_string(d) : size.symbol;
      if (size.value < 0 && !size.symbol.empty()) {
        const bool first = symbols.empty();
        const char* meaning = d == 0 && first ? "batch" : d == 1 && own->sizes.size() < 4 ? "sequence" : "";
        symbol = symbols.try_emplace(size.symbol, *meaning ? std::string(meaning) + "_" + size.symbol : size.symbol)
                     .first->second;
      }
      names.push_back(symbol);
    }
    values_[name] = out_.unique(name);
    out_.input(values_[name], own->type, shape, names);
  }
}

const TensorMeta* Lowering::meta(const std::string& name) const {
  for (auto graph = graphs_.rbegin(); graph != graphs_.rend(); ++graph)
    if (const auto found = (*graph)->tensors.find(name); found != (*graph)->tensors.end()) return &found->second;
  return nullptr;
}

void Lowering::visit(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (error_) return;
    visit(node);
  }
}

void Lowering::visit(const Node& node) {
  node_ = &node;
  std::string_view target = node.target;
  for (const std::string_view begin : {"aten.", "higher_order.", "prims."})
    if (target.starts_with(begin)) target.remove_prefix(begin.size());
  const auto dot = target.starts_with("_operator.") || target.starts_with("math.") ? target.npos : target.find('.');
  kind_ = target.substr(0, dot);
  overload_ = dot == target.npos ? std::string() : std::string(target.substr(dot + 1));
  const bool in_place = kind_.size() > 1 && kind_.ends_with('_') && !kind_.ends_with("__");
  if (in_place) kind_.pop_back();
  auto found = handlers().find(kind_);
  if (found == handlers().end()) {
    if (kind_.starts_with("_assert") || kind_.starts_with("sym_constrain") || node.outputs.empty()) return;
    unknown_.insert(node.target);
    return;
  }
  if (!unknown_.empty()) return;  // what follows an unknown operator is only looked at for further ones
  (this->*found->second)();
  // The tensor itself was changed: its later readers mean the result.
  if (in_place && !error_ && !node.inputs.empty() && !node.outputs.empty())
    if (const auto& self = node.inputs.front().second; self.kind == Argument::Kind::tensor)
      if (const auto result = values_.find(node.outputs.front()); result != values_.end())
        values_[self.tensors.front()] = result->second;
}

void Lowering::fail(std::string what) {
  if (error_) return;
  error_ = bad_input(std::move(what), file_ + ": node '" + node_->name + "' (" + node_->target + ")");
  error_->hint = "export the same module with torch.onnx.export and open what it writes";
}

Lowering::Names Lowering::emit_many(std::string kind, Names inputs, Attributes attributes, std::size_t outputs) {
  if (++emitted_ > kMaxOperators) fail("is the last of more than " + std::to_string(kMaxOperators) + " operators");
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  const std::string name = node_->scope.empty() ? node_->name : node_->scope + "/" + node_->name;
  Names made;
  for (std::size_t i = 0; i < outputs; ++i) made.push_back(out_.unique(name));
  if (error_) return made;
  if (std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) { return trained_.count(input) > 0; }))
    trained_.insert(made.begin(), made.end());
  out_.node({std::move(kind), {}, made.empty() ? name : made.front(), std::move(inputs), made, std::move(attributes)});
  return made;
}

std::string Lowering::emit(std::string kind, Names inputs, Attributes attributes) {
  return emit_many(std::move(kind), std::move(inputs), std::move(attributes), 1).front();
}

void Lowering::set(std::size_t output, std::string value) {
  if (output < node_->outputs.size() && !node_->outputs[output].empty())
    values_[node_->outputs[output]] = std::move(value);
}

/// A graph that runs under a context (no gradients, another precision): its nodes are those of the graph around it.
void Lowering::on_inner_graph() {
  const Node& call = *node_;
  std::shared_ptr<const Graph> inner;
  Names given;
  for (const auto& [name, argument] : call.inputs) {
    if (argument.kind == Argument::Kind::graph)
      inner = argument.graph;
    else if (inner && argument.kind == Argument::Kind::tensor)
      given.push_back(argument.tensors.front());
  }
  if (!inner || given.size() != inner->inputs.size()) return fail("its graph does not fit its arguments");
  const auto outside = values_;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto found = outside.find(given[i]);
    if (found != outside.end()) values_[inner->inputs[i]] = found->second;
  }
  graphs_.push_back(inner.get());
  visit(*inner);
  graphs_.pop_back();
  const auto inside = std::move(values_);
  values_ = outside;
  node_ = &call;
  for (std::size_t i = 0; i < inner->outputs.size(); ++i)
    if (const auto found = inside.find(inner->outputs[i]); found != inside.end()) set(i, found->second);
}

}  // namespace turnpoint::torch_program
