// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/binder.h"

#include <fmt/format.h>

#include <algorithm>

namespace turnpoint::onnx {

namespace {

constexpr std::int64_t kDefaultImageSize = 224;
/// Sizes above this are no network's; products of eight such sizes still fit the builder's own check.
constexpr std::int64_t kMaxDimension = std::int64_t{1} << 48;

std::string stem(const std::string& path) {
  const auto slash = path.find_last_of('/');
  const auto file = slash == std::string::npos ? path : path.substr(slash + 1);
  const auto dot = file.find_last_of('.');
  return dot == std::string::npos || dot == 0 ? file : file.substr(0, dot);
}

}  // namespace

Binder::Binder(const Graph& graph, const InputPlan& plan, std::int64_t batch, std::int64_t sequence,
               const std::vector<std::optional<Shape>>* reference)
    : graph_(graph),
      plan_(plan),
      batch_(batch),
      sequence_(sequence),
      reference_(reference),
      real_(stem(graph.file), graph.file, batch, plan.sequence_symbols.empty() ? 0 : sequence),
      builder_(&real_),
      values_(graph.values.size()) {}

BindResult Binder::run() {
  add_initializers();
  add_inputs();
  for (const auto& node : graph_.nodes) {
    if (error_) break;
    visit(node);
  }
  auto model = finish();
  BindResult result{std::move(model), {}};
  for (const auto& value : values_) {
    result.shapes.push_back(value.kind == Value::Kind::missing ? std::optional<Shape>()
                                                               : std::optional<Shape>(value.shape));
  }
  return result;
}

void Binder::fail(const Node& node, std::string what) {
  if (!error_) error_ = bad_input(std::move(what), graph_.place(node));
}

std::string Binder::operator_name(const Node& node) const {
  const auto& name = node.name;
  return name.size() > 1 && name[0] == '/' ? name.substr(1) : name;
}

std::string Binder::scope_of(const Node& node) const {
  const auto name = operator_name(node);
  if (const auto slash = name.find_last_of('/'); slash != std::string::npos) return name.substr(0, slash);
  for (const int input : node.inputs) {
    if (input < 0 || values_[input].kind != Value::Kind::parameter) continue;
    std::string weight = graph_.values[values_[input].root].name;
    if (weight.find("::") != std::string::npos) continue;
    if (weight.find('/') == std::string::npos) std::replace(weight.begin(), weight.end(), '.', '/');
    const auto slash = weight.find_last_of('/');
    if (slash != std::string::npos) return weight.substr(0, slash);
  }
  return {};
}

void Binder::add_initializers() {
  std::map<std::string, int> external;
  for (std::size_t v = 0; v < graph_.values.size(); ++v) {
    const auto* tensor = graph_.values[v].initializer;
    if (!tensor || !tensor->type) continue;
    Value& value = values_[v];
    double elements = 1;
    for (const auto size : tensor->dims) {
      if (size < 0 || size > kMaxDimension) {
        error_ = bad_input("initializer '" + tensor->name + "' has an impossible dimension", graph_.file);
        return;
      }
      elements *= static_cast<double>(size);
    }
    if (elements > 1e18) {
      error_ = bad_input("initializer '" + tensor->name + "' has more than 10^18 elements", graph_.file);
      return;
    }
    value.type = *tensor->type;
    value.shape = tensor->dims;
    value.data = tensor->data;
    value.kind = Value::Kind::constant;
    if (plan_.tables.count(static_cast<int>(v))) {
      // A folded mask or table of angles that has a row for each sample of the exported batch has one for each of any.
      if (reference_ && plan_.fixed_batch > 1 && value.shape.size() > 2 && value.shape[0] == plan_.fixed_batch) {
        value.shape[0] = batch_;
        value.data = nullptr;
      }
      continue;
    }
    if (elements == 0 || !is_floating(value.type) || tensor->dims.empty() || elements == 1) continue;
    value.kind = Value::Kind::parameter;
    value.root = static_cast<int>(v);
    if (plan_.repeated.count(static_cast<int>(v))) {
      value.shape[0] = 1;
      value.data = nullptr;
    }
    if (tensor->external.empty()) continue;
    // Two names for the same bytes of the external file are one parameter.
    const auto [first, added] = external.emplace(tensor->external, static_cast<int>(v));
    if (!added && tensor->external.back() != ':' && graph_.values[first->second].initializer->dims == tensor->dims) {
      value.root = first->second;
    }
  }
  for (const auto& [twin, root] : plan_.transposed_twins) {
    if (values_[twin].kind != Value::Kind::parameter || values_[root].kind != Value::Kind::parameter) continue;
    values_[twin].root = root;
    values_[twin].transposed = true;
  }
  if (plan_.eight_bit_elements > 0)
    builder_->warn(
        fmt::format("{:.0f} elements of 8-bit tensors are not counted as parameters: training keeps weights in "
                    "floating point, so this is a model made for inference",
                    plan_.eight_bit_elements));
}

void Binder::add_inputs() {
  for (const int v : plan_.weights) {
    Value& value = values_[v];
    value.kind = Value::Kind::parameter;
    value.root = v;
    for (const auto& dim : graph_.values[v].input->shape) value.shape.push_back(dim.value);
  }
  for (const int v : plan_.data) {
    const auto& node = graph_.values[v];
    if (node.consumers.empty()) continue;
    if (!node.input->has_shape || !node.input->type) {
      error_ = bad_input("input '" + node.name + "' has no tensor type with a shape", graph_.file);
      return;
    }
    Shape shape;
    Dims dims(node.input->shape.size(), DimName::other);
    const std::size_t rank = dims.size();
    bool convolution = rank >= 4, recurrent = false;
    for (const int consumer : node.consumers) {
      const auto& kind = graph_.nodes[consumer].kind;
      convolution = convolution || (kind == "Conv" && rank == 3);
      recurrent = recurrent || kind == "LSTM" || kind == "GRU" || kind == "RNN";
    }
    for (std::size_t d = 0; d < rank; ++d) {
      const auto symbol = dimension_symbol(node, d);
      const bool other =
          std::find(plan_.other_symbols.begin(), plan_.other_symbols.end(), symbol) != plan_.other_symbols.end();
      std::int64_t size = node.input->shape[d].value;
      const bool batch =
          symbol.empty() ? d == 0 && plan_.fixed_batch > 0 && size == plan_.fixed_batch : symbol == plan_.batch_symbol;
      if (batch) {
        size = batch_;
        dims[d] = DimName::batch;
      } else if (other) {
        size = kDefaultImageSize;
        builder_->warn("dimension '" + symbol + "' of input '" + node.name +
                       "' is not fixed by the file: " + std::to_string(size) + " is used");
      } else if (!symbol.empty()) {
        size = sequence_;
        dims[d] = DimName::sequence;
      }
      if (size > kMaxDimension) {
        error_ = bad_input("input '" + node.name + "' has an impossible dimension", graph_.file);
        return;
      }
      shape.push_back(size);
    }
    static constexpr DimName kSpatial[] = {DimName::depth, DimName::height, DimName::width};
    for (std::size_t d = 0; d < rank; ++d) {
      if (dims[d] != DimName::other) continue;
      if (convolution)
        dims[d] = d == 0      ? DimName::batch
                  : d == 1    ? DimName::channel
                  : rank == 3 ? DimName::window
                  : rank <= 5 ? kSpatial[d + 3 - rank]
                              : DimName::other;
      else if (recurrent && rank == 3)
        dims[d] = d == 0 ? DimName::sequence : d == 1 ? DimName::batch : DimName::channel;
      else if (d + 1 == rank && rank > 1 && (is_floating(*node.input->type) || rank > 2))
        dims[d] = DimName::channel;
      else if (d == 1)
        dims[d] = DimName::sequence;
      else if (d == 0 && rank > 1 && std::find(dims.begin(), dims.end(), DimName::batch) == dims.end())
        dims[d] = DimName::batch;
    }
    Value& value = values_[v];
    value.kind = Value::Kind::tensor;
    value.type = *node.input->type;
    value.shape = shape;
    value.tensor = builder_->input(node.name, std::move(shape), std::move(dims), value.type);
  }
}

bool Binder::try_constant(const Node& node) {
  if (node.outputs.size() != 1 || node.outputs[0] < 0) return false;
  std::vector<ConstantPtr> inputs;
  for (const int input : node.inputs)
    inputs.push_back(input >= 0 && values_[input].kind == Value::Kind::constant ? values_[input].data : nullptr);
  if (node.kind == "CastLike" && node.domain.empty() && inputs.size() == 2 && inputs[0] && has(node, 1)) {
    const auto result = evaluate_cast_like(*inputs[0], in(node, 1).type);
    if (result) set_constant(node.outputs[0], result);
    return result != nullptr;
  }
  const Shape* first = node.input(0) >= 0 && values_[node.inputs[0]].kind != Value::Kind::missing
                           ? &values_[node.inputs[0]].shape
                           : nullptr;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool shape_only = i == 0 && (node.kind == "Shape" || node.kind == "Size");
    if (!inputs[i] && node.inputs[i] >= 0 && !shape_only) return false;
  }
  const auto result =
      node.kind == "Constant" ? graph_.constant(node.outputs[0]) : evaluate(node, inputs, first, graph_.opset);
  if (!result) return false;
  set_constant(node.outputs[0], result);
  return true;
}

/// Masks and states of an export at a fixed batch: filled with that many rows, or chosen by counting up to it.
bool Binder::try_literal_batch(const Node& node) {
  if (!plan_.literal_batch || !reference_ || plan_.fixed_batch < 2 || node.output(0) < 0 || !node.domain.empty()) return false;
  if (node.kind == "ConstantOfShape") {
    auto dims = constant_integers(node, 0);
    if (!dims || dims->size() < 2 || dims->front() != plan_.fixed_batch) return false;
    on_constant_of_shape(node);
    if (error_) return true;
    const ElementType type = values_[node.outputs[0]].type;
    dims->front() = batch_;
    set_unknown_constant(node.outputs[0], *dims, type);
    return true;
  }
  if (node.kind != "Range" || node.inputs.size() != 3) return false;
  const auto begin = scalar(node, 0), end = scalar(node, 1), step = scalar(node, 2);
  if (begin != 0.0 || step != 1.0 || !end || *end != double(plan_.fixed_batch)) return false;
  set_unknown_constant(node.outputs[0], {batch_}, in(node, 0).type);
  return true;
}

/// A condition that depends on data is taken to hold.
bool Binder::takes_then(int condition) const {
  const auto& value = values_[condition];
  if (value.kind != Value::Kind::constant || !value.data || value.data->size() != 1) return true;
  return value.data->real(0) != 0;
}

bool Binder::enabled(const Node& node) const {
  return std::all_of(node.guards.begin(), node.guards.end(),
                     [&](const auto& guard) { return takes_then(guard.first) == guard.second; });
}

void Binder::visit(const Node& node) {
  if (!enabled(node)) return;
  if (node.kind == "If" && node.domain.empty()) return on_if(node);
  if (node.output(0) >= 0 && plan_.filled_weights.count(node.outputs[0])) {
    Value& value = values_[node.outputs[0]];
    value = Value();
    value.kind = Value::Kind::parameter;
    value.root = node.outputs[0];
    value.shape = graph_.constant(node.input(0))->integers;
    return;
  }
  if (try_literal_batch(node) || try_constant(node)) return;
  const bool runtime = node.domain == "com.microsoft";
  const auto& table = runtime ? runtime_handlers() : handlers();
  const auto found = runtime || node.domain.empty() ? table.find(node.kind) : table.end();
  const Handler handler = found == table.end() ? &Binder::on_unknown : found->second;
  for (const int input : node.inputs) {
    if (input >= 0 && values_[input].kind == Value::Kind::missing && handler != &Binder::on_refused) {
      const auto& value = graph_.values[input];
      return fail(node, "reads '" + value.name + "', whose shape is not known");
    }
  }
  bool constants_only = !node.inputs.empty();
  for (const int input : node.inputs)
    constants_only = constants_only && (input < 0 || values_[input].kind == Value::Kind::constant);
  if (constants_only && handler != &Binder::on_refused) return visit_constants_only(node, handler);
  builder_->set_scope(scope_of(node));
  (this->*handler)(node);
  if (!error_) track_batch(node);
  if (!error_ && builder_->error()) error_ = bad_input(builder_->error()->what, graph_.place(node));
}

/// A large constant computed from constants: only its shape is wanted, so the operator is built aside and thrown away.
void Binder::visit_constants_only(const Node& node, Handler handler) {
  ModelBuilder aside("", graph_.file, batch_, sequence_);
  std::vector<Value> inputs;
  for (const int input : node.inputs) inputs.push_back(input >= 0 ? values_[input] : Value());
  for (const int input : node.inputs) {
    if (input >= 0) values_[input].tensor = {};
  }
  builder_ = &aside;
  scratch_ = true;
  (this->*handler)(node);
  scratch_ = false;
  builder_ = &real_;
  if (!error_ && aside.error()) error_ = bad_input(aside.error()->what, graph_.place(node));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] >= 0) values_[node.inputs[i]] = std::move(inputs[i]);
  }
  for (const int output : node.outputs) {
    if (output < 0 || values_[output].kind == Value::Kind::missing) continue;
    Value& value = values_[output];
    // Made from fixed values by a kind that owns weights (ConstantOfShape into a Conv): stays what the handler said.
    if (value.kind == Value::Kind::tensor) set_unknown_constant(output, value.shape, value.type);
  }
}

Expected<ModelPtr> Binder::finish() {
  if (error_) return *error_;
  std::vector<TensorId> results;
  for (const int value : graph_.results) {
    if (values_[value].kind == Value::Kind::tensor) results.push_back(values_[value].tensor);
  }
  if (results.empty()) return bad_input("computes no result from its inputs", graph_.file);
  if (!unknown_kinds_.empty()) {
    std::string list;
    for (const auto& kind : unknown_kinds_) list += (list.empty() ? "" : ", ") + kind;
    real_.warn("unknown operators are treated as elementwise functions: " + list);
  }
  for (const auto& warning : graph_.warnings) real_.warn(warning);
  interleave_fused_projections();
  auto& symbols = real_.model().symbolic_dimensions;
  if (!plan_.batch_symbol.empty()) symbols.push_back(plan_.batch_symbol);
  symbols.insert(symbols.end(), plan_.sequence_symbols.begin(), plan_.sequence_symbols.end());
  symbols.insert(symbols.end(), plan_.other_symbols.begin(), plan_.other_symbols.end());
  return real_.finish(std::move(results), true);
}

}  // namespace turnpoint::onnx
