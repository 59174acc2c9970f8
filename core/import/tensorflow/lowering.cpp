// SPDX-License-Identifier: Apache-2.0
#include "core/import/tensorflow/lowering.h"

#include <algorithm>

namespace turnpoint::tensorflow {

namespace {

constexpr std::size_t kMaxWarnings = 50;
/// Far above any network, and what keeps a hostile file below half a gigabyte.
constexpr std::size_t kMaxOperators = 100'000;

}  // namespace

Lowering::Lowering(const FlatGraph& graph) : graph_(graph), values_(graph.nodes.size()), readers_(graph.nodes.size()) {
  for (const int index : graph.order) {
    const auto& node = graph.nodes[static_cast<std::size_t>(index)];
    frozen_ = frozen_ && node.op != "VariableV2" && node.op != "Variable" && node.op != "VarHandleOp";
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      readers_[static_cast<std::size_t>(node.inputs[i].node)].push_back({index, static_cast<int>(i)});
    const bool spatial = node.op.find("Conv") != std::string::npos || node.op.find("Pool") != std::string::npos ||
                         node.op.starts_with("FusedBatchNorm") || node.op.starts_with("Resize");
    const auto format = node.text("data_format", "NHWC");
    spatial_last_ = spatial_last_ || (spatial && (format == "NHWC" || format == "NDHWC"));
  }
}

Expected<Lowered> Lowering::run() {
  for (const int index : graph_.order) {
    visit(index);
    if (!error_ && out_.size() + weights_.size() > kMaxOperators)
      fail("needs more than 100000 operators and constants");
    if (error_) return *error_;
  }
  std::map<std::string, bool> written;
  for (const auto& edge : graph_.results) {
    auto& outputs = values_[static_cast<std::size_t>(edge.node)];
    if (static_cast<std::size_t>(edge.port) >= outputs.size()) continue;
    const auto& value = outputs[static_cast<std::size_t>(edge.port)];
    if (value.kind == Value::Kind::tensor && !std::exchange(written[value.name], true)) out_.output(value.name);
  }
  if (written.empty()) return bad_input("computes no result from its inputs", graph_.file);
  return Lowered{out_.bytes(), std::move(warnings_)};
}

void Lowering::visit(int index) {
  index_ = index;
  node_ = &graph_.nodes[static_cast<std::size_t>(index)];
  const auto& table = handlers();
  const auto found = table.find(node_->op);
  const Handler handler = found == table.end() ? &Lowering::on_unknown : found->second;
  (this->*handler)();
}

void Lowering::fail(std::string what) {
  if (!error_) error_ = bad_input(std::move(what), graph_.place(*node_));
}

bool Lowering::has(std::size_t i) const {
  if (i >= node_->inputs.size()) return false;
  const Edge edge = node_->inputs[i];
  const auto& outputs = values_[static_cast<std::size_t>(edge.node)];
  return static_cast<std::size_t>(edge.port) < outputs.size() &&
         outputs[static_cast<std::size_t>(edge.port)].kind != Value::Kind::none;
}

/// Only after has(i).
Lowering::Value& Lowering::in(std::size_t i) {
  const Edge edge = node_->inputs[i];
  return values_[static_cast<std::size_t>(edge.node)][static_cast<std::size_t>(edge.port)];
}

bool Lowering::needs(std::size_t inputs) {
  for (std::size_t i = 0; i < inputs; ++i) {
    if (has(i)) continue;
    if (i >= node_->inputs.size())
      fail("input " + std::to_string(i) + " is missing");
    else
      fail("reads '" + graph_.nodes[static_cast<std::size_t>(node_->inputs[i].node)].name +
           "', which makes no tensor of numbers");
    return false;
  }
  return true;
}

void Lowering::set(std::size_t port, Value value) {
  auto& outputs = values_[static_cast<std::size_t>(index_)];
  if (port >= outputs.size()) outputs.resize(port + 1);
  outputs[port] = std::move(value);
}

Lowering::Value Lowering::tensor(std::string name, MaybeShape shape, DataType type, bool channels_first) const {
  Value value;
  value.kind = Value::Kind::tensor;
  value.name = std::move(name);
  value.shape = std::move(shape);
  value.type = type;
  value.channels_first = channels_first;
  return value;
}

std::string Lowering::emit(std::string kind, Names inputs, Attributes attributes, std::string_view suffix,
                           std::string domain) {
  const std::string name = suffix.empty() ? node_->name : node_->name + "/" + std::string(suffix);
  const auto value = out_.unique(name);
  out_.node({std::move(kind), std::move(domain), name, std::move(inputs), {value}, std::move(attributes)});
  return value;
}

std::string Lowering::integers(std::string_view suffix, const std::vector<std::int64_t>& values) {
  const auto name = out_.unique(node_->name + "/" + std::string(suffix));
  out_.initializer(name, {DataType::i64, {static_cast<std::int64_t>(values.size())}, true, values, {}});
  return name;
}

std::string Lowering::scalar(std::string_view suffix, std::int64_t value) {
  const auto name = out_.unique(node_->name + "/" + std::string(suffix));
  out_.initializer(name, {DataType::i64, {}, true, {value}, {}});
  return name;
}

void Lowering::warn_once(const std::string& text) {
  const bool known = std::find(warnings_.begin(), warnings_.end(), text) != warnings_.end();
  if (!known && warnings_.size() < kMaxWarnings) warnings_.push_back(text);
}

const Lowering::Table& Lowering::handlers() {
  static const Table table = [] {
    Table t;
    add_layers(t);
    add_views(t);
    add_control(t);
    return t;
  }();
  return table;
}

}  // namespace turnpoint::tensorflow
