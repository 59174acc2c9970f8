// SPDX-License-Identifier: Apache-2.0
// Constants, variables, placeholders, inputs the file does not hold, and operators nobody knows.
#include <algorithm>
#include <array>

#include "core/import/tensorflow/lowering.h"
#include "core/import/tensorflow/tensor_value.h"

namespace turnpoint::tensorflow {

namespace {

constexpr std::int64_t kMaxDimension = std::int64_t{1} << 48;

bool plausible(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= -1 && size <= kMaxDimension; });
}
bool complete(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= 0; });
}

MaybeShape declared_shape(const FlatNode& node, std::size_t port) {
  if (const auto* shapes = node.attribute("_output_shapes");
      shapes && port < shapes->shapes.size() && shapes->shapes[port])
    return shapes->shapes[port];
  if (const auto* shapes = node.attribute("output_shapes"); shapes && port < shapes->shapes.size())
    return shapes->shapes[port];
  return std::nullopt;
}

/// Copies of a variable are named "kernel_1" where the list of variables says "kernel".
bool is_trained(const GraphDef& graph, const std::string& name) {
  if (graph.trainable) return graph.trainable->count(name) > 0;
  const auto number = name.find_last_not_of("0123456789");
  const bool copy = number != std::string::npos && number + 1 < name.size() && name[number] == '_';
  return graph.untrained.count(name) == 0 && (!copy || graph.untrained.count(name.substr(0, number)) == 0);
}

}  // namespace

void Lowering::on_const() {
  const auto* attribute = node_->attribute("value");
  if (!attribute || !attribute->tensor) return fail("holds no value");
  const TensorValue& tensor = *attribute->tensor;
  if (tensor.type == DataType::string || tensor.type == DataType::resource || tensor.type == DataType::variant) return;
  if (!element_count(tensor.shape) || !plausible(tensor.shape)) return fail("holds a tensor of an impossible size");
  Value value;
  value.kind = Value::Kind::weight;
  value.type = tensor.type;
  value.shape = tensor.shape;
  value.weight = add_weight(node_->name, tensor, true, frozen_);
  set(0, std::move(value));
}

void Lowering::on_variable() {
  const auto* type = node_->attribute("dtype");
  const auto* shape = node_->attribute("shape");
  MaybeShape written = shape && shape->shape ? *shape->shape : std::nullopt;
  if (!written || !complete(*written)) {
    if (const auto declared = declared_shape(*node_, 0); declared && complete(*declared)) written = declared;
  }
  const bool shaped = written && complete(*written);
  if (shaped && (!element_count(*written) || !plausible(*written))) return fail("holds a tensor of an impossible size");
  std::string name = node_->name;
  if (const auto shared = node_->text("shared_name", ""); !shared.empty() && node_->op == "VarHandleOp") name = shared;
  // Two handles of one shared name are one variable.
  const auto [known, added] = weight_names_.emplace(name, -1);
  if (added) {
    TensorValue tensor;
    tensor.type = type && type->type ? *type->type : DataType::f32;
    if (shaped) tensor.shape = *written;
    // Running statistics and counters: state that training does not learn.
    known->second = add_weight(name, std::move(tensor), shaped, is_trained(*graph_.def, name));
  }
  Value value;
  value.kind = Value::Kind::weight;
  value.weight = known->second;
  value.type = weights_[static_cast<std::size_t>(known->second)].tensor.type;
  if (shaped) value.shape = *written;
  set(0, std::move(value));
}

void Lowering::on_missing() {
  Value value;
  value.kind = Value::Kind::weight;
  value.weight = add_weight(node_->name, {}, false, true);
  set(0, std::move(value));
}

/// Whether images flow from here into an operator that has its channels last.
bool Lowering::reaches_spatial(int index) const {
  std::vector<int> pending{index};
  std::vector<int> seen;
  while (!pending.empty() && seen.size() < 64) {
    const int at = pending.back();
    pending.pop_back();
    if (std::find(seen.begin(), seen.end(), at) != seen.end()) continue;
    seen.push_back(at);
    for (const auto& reader : readers_[static_cast<std::size_t>(at)]) {
      const auto& node = graph_.nodes[static_cast<std::size_t>(reader.node)];
      const auto format = node.text("data_format", "NHWC");
      const bool last = format == "NHWC" || format == "NDHWC";
      if (node.op.starts_with("Conv") || node.op.starts_with("Depthwise") || node.op.starts_with("MaxPool") ||
          node.op.starts_with("AvgPool") || node.op.starts_with("Resize"))
        return last && reader.port <= 2;
      if (reader.port > 1 || node.op == "Reshape" || node.op == "Transpose" || node.op == "Shape") continue;
      pending.push_back(reader.node);
    }
  }
  return false;
}

/// The rank and channels of a placeholder without a shape, from the first product or convolution it flows into.
MaybeShape Lowering::inferred_placeholder(bool& sequence, bool& guessed) const {
  int at = index_, added = 0;
  std::vector<std::int64_t> axes;
  for (int hops = 0; hops < 64; ++hops) {
    const auto& readers = readers_[static_cast<std::size_t>(at)];
    if (readers.empty()) return std::nullopt;
    const auto& node = graph_.nodes[static_cast<std::size_t>(readers.front().node)];
    const auto weight_shape = [&]() -> MaybeShape {
      if (node.inputs.size() < 2) return std::nullopt;
      const auto* other = &graph_.nodes[static_cast<std::size_t>(node.inputs[1].node)];
      for (int k = 0; k < 8 && (other->op == "Identity" || other->op == "ReadVariableOp") && !other->inputs.empty();
           ++k)
        other = &graph_.nodes[static_cast<std::size_t>(other->inputs[0].node)];
      if (const auto* value = other->attribute("value"); value && value->tensor) return value->tensor->shape;
      const auto* shape = other->attribute("shape");
      return shape && shape->shape ? *shape->shape : std::nullopt;
    };
    if (node.op == "Conv2D" || node.op == "DepthwiseConv2dNative" || node.op == "MatMul") {
      const auto weight = weight_shape();
      const int rank = (node.op == "MatMul" ? 2 : 4) - added;
      if (!weight || weight->size() < 2 || rank < 2 || rank > 4 || readers.front().port != 0) return std::nullopt;
      Shape shape(static_cast<std::size_t>(rank), -1);
      const bool first = node.text("data_format", "NHWC") == "NCHW";
      if (!first || rank == 2)
        shape.back() = node.op == "MatMul" ? (*weight)[node.flag("transpose_b", false) ? 1 : 0] : (*weight)[2];
      if (first && rank == 4) shape[1] = (*weight)[2];
      sequence = !axes.empty() && axes.front() == 0;
      return shape;
    }
    if (node.op == "ExpandDims" && node.inputs.size() == 2) {
      const auto* value = graph_.nodes[static_cast<std::size_t>(node.inputs[1].node)].attribute("value");
      if (!value || !value->tensor || !value->tensor->known || value->tensor->integers.size() != 1) return std::nullopt;
      axes.push_back(value->tensor->integers[0]);
      if (axes.back() < 0) return std::nullopt;
      ++added;
    } else if (node.op == "Add" || node.op == "RealDiv" || node.op == "Mul" || node.op == "Sub" || node.op == "AddV2") {
      if (node.inputs.size() != 2) return std::nullopt;
      const auto& other =
          graph_.nodes[static_cast<std::size_t>(node.inputs[1 - std::min(readers.front().port, 1)].node)];
      if (other.op != "Const" && other.op != kMissing) {  // a number such as a keep probability or a learning rate
        guessed = true;
        return Shape{};
      }
    } else if (node.inputs.size() != 1) {
      return std::nullopt;
    }
    at = readers.front().node;
  }
  return std::nullopt;
}

void Lowering::on_placeholder() {
  const auto* dtype = node_->attribute("dtype");
  DataType type = dtype && dtype->type ? *dtype->type : DataType::f32;
  if (const auto* types = node_->attribute("output_types"); types && !types->integers.empty())
    type = data_type(types->integers.front());
  if (type == DataType::resource) return on_missing();  // a variable handed in from outside
  if (type == DataType::string || type == DataType::variant) return;
  const auto* attribute = node_->attribute("shape");
  MaybeShape shape = attribute && attribute->shape ? *attribute->shape : std::nullopt;
  if (!shape || shape->empty()) {
    if (const auto declared = declared_shape(*node_, 0)) shape = declared;
  }
  bool sequence = false, guessed = false;
  // Old files write an empty shape where they mean an unknown one.
  if (!shape) shape = inferred_placeholder(sequence, guessed);
  if (guessed) warn_once("input '" + node_->name + "' has no shape in the file and is taken as one number");
  if (!shape) return fail("has no shape in the file and none follows from what reads it");
  if (!plausible(*shape)) return fail("has an impossible dimension");
  const bool first = shape->size() >= 4 && shape->size() <= 5 && spatial_last_ && reaches_spatial(index_);
  Shape written = *shape;
  std::vector<std::string> symbols;
  static constexpr std::array<const char*, 3> kSpatial = {"depth", "height", "width"};
  if (first) written = permuted(written, to_first(shape->size()));
  // Time-major data: a fixed number of steps, then the batch.
  const std::size_t batch = written.size() >= 2 && written[0] > 0 && written[1] < 0 && !first ? 1 : 0;
  for (std::size_t d = 0; d < written.size(); ++d) {
    const bool image = written.size() >= 4 && d >= 2;
    symbols.push_back(d == batch && !sequence        ? "batch"
                      : image && written.size() <= 5 ? kSpatial[d + 3 - written.size()]
                                                     : "sequence");
    if (written[d] == 0) written[d] = -1;
  }
  const auto name = out_.unique(node_->name);
  out_.input(name, type, written, symbols);
  for (auto& size : *shape) size = size == 0 ? -1 : size;
  set(0, tensor(name, std::move(shape), type, first));
}

void Lowering::on_unknown() {
  if (node_->inputs.empty() || node_->op.find("Iterator") != std::string::npos ||
      node_->op.find("Dequeue") != std::string::npos) {
    input_node();
    return;
  }
  Names inputs;
  for (std::size_t i = 0; i < count(); ++i) {
    if (!has(i)) continue;
    Value& value = in(i);
    if (value.kind == Value::Kind::weight && !weights_[static_cast<std::size_t>(value.weight)].shaped) continue;
    inputs.push_back(plain(value));
  }
  if (inputs.empty()) return;  // works on strings or resources: whoever needs its result says so
  std::size_t ports = 1;
  for (const auto& reader : readers_[static_cast<std::size_t>(index_)])
    ports = std::max(
        ports,
        static_cast<std::size_t>(
            graph_.nodes[static_cast<std::size_t>(reader.node)].inputs[static_cast<std::size_t>(reader.port)].port) +
            1);
  if (ports > 1024) return fail("an output beyond the 1024th is read");
  Names outputs;
  for (std::size_t port = 0; port < ports; ++port) {
    outputs.push_back(out_.unique(port == 0 ? node_->name : node_->name + ":" + std::to_string(port)));
    const auto declared = declared_shape(*node_, port);
    const auto* type = node_->attribute(port == 0 ? "T" : "dtype");
    if (declared && plausible(*declared))
      out_.declare(outputs.back(), type && type->type ? *type->type : has(0) ? in(0).type : DataType::f32, *declared);
    set(port, tensor(outputs.back(),
                     declared ? declared
                     : has(0) ? in(0).shape
                              : std::nullopt,
                     has(0) ? in(0).type : DataType::f32));
  }
  out_.node({node_->op, "tensorflow", node_->name, std::move(inputs), std::move(outputs), {}});
}

/// Data that comes from a queue, an iterator or an operator without inputs: shapes must be declared.
void Lowering::input_node() {
  const auto* types = node_->attribute("output_types");
  if (!types) types = node_->attribute("component_types");
  for (std::size_t port = 0; port < 64; ++port) {
    const auto shape = declared_shape(*node_, port);
    if (!shape || !plausible(*shape)) continue;
    const auto type = types && port < types->integers.size() ? data_type(types->integers[port]) : DataType::f32;
    if (type == DataType::string || type == DataType::resource || type == DataType::variant) continue;
    std::vector<std::string> symbols(shape->size(), "sequence");
    if (!symbols.empty()) symbols[0] = "batch";
    const auto name = out_.unique(port == 0 ? node_->name : node_->name + ":" + std::to_string(port));
    out_.input(name, type, *shape, symbols);
    set(port, tensor(name, shape, type));
  }
}

}  // namespace turnpoint::tensorflow
