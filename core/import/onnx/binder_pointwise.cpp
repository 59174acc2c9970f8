// SPDX-License-Identifier: Apache-2.0
// Elementwise functions, normalisations, softmax, pooling, reductions.
#include <algorithm>
#include <unordered_map>

#include "core/import/onnx/binder.h"

namespace turnpoint::onnx {

namespace {

struct Function {
  double flop;
  bool saves_output, saves_input;
};

/// Arithmetic per element and what the derivative is computed from.
const std::unordered_map<std::string_view, Function>& unary_functions() {
  static const std::unordered_map<std::string_view, Function> table = {{"Relu", {1, true, false}},
                                                                       {"LeakyRelu", {2, true, false}},
                                                                       {"Elu", {4, true, false}},
                                                                       {"Selu", {4, true, false}},
                                                                       {"Celu", {4, true, false}},
                                                                       {"Sigmoid", {4, true, false}},
                                                                       {"Tanh", {6, true, false}},
                                                                       {"Exp", {4, true, false}},
                                                                       {"Sqrt", {2, true, false}},
                                                                       {"Reciprocal", {2, true, false}},
                                                                       {"HardSigmoid", {3, true, false}},
                                                                       {"Log", {4, false, true}},
                                                                       {"Erf", {8, false, true}},
                                                                       {"Gelu", {12, false, true}},
                                                                       {"HardSwish", {4, false, true}},
                                                                       {"Softplus", {6, false, true}},
                                                                       {"Softsign", {3, false, true}},
                                                                       {"Mish", {10, false, true}},
                                                                       {"Swish", {5, false, true}},
                                                                       {"Abs", {1, false, true}},
                                                                       {"Clip", {2, false, true}},
                                                                       {"ThresholdedRelu", {1, false, true}},
                                                                       {"Shrink", {2, false, true}},
                                                                       {"Sin", {4, false, true}},
                                                                       {"Cos", {4, false, true}},
                                                                       {"Tan", {6, false, true}},
                                                                       {"Asin", {6, false, true}},
                                                                       {"Acos", {6, false, true}},
                                                                       {"Atan", {6, false, true}},
                                                                       {"Sinh", {6, false, true}},
                                                                       {"Cosh", {6, false, true}},
                                                                       {"Asinh", {8, false, true}},
                                                                       {"Acosh", {8, false, true}},
                                                                       {"Atanh", {8, false, true}},
                                                                       {"Neg", {1, false, false}},
                                                                       {"Floor", {1, false, false}},
                                                                       {"Ceil", {1, false, false}},
                                                                       {"Round", {1, false, false}},
                                                                       {"Sign", {1, false, false}},
                                                                       {"LRN", {12, false, true}},
                                                                       {"LpNormalization", {4, false, true}},
                                                                       {"MeanVarianceNormalization", {6, false, true}}};
  return table;
}

bool is_comparison(std::string_view kind) {
  for (const char* name :
       {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"}) {
    if (kind == name) return true;
  }
  return false;
}

}  // namespace

void Binder::on_unary(const Node& node) {
  if (!needs(node, 1)) return;
  ElementwiseTraits traits;
  if (const auto found = unary_functions().find(node.kind); found != unary_functions().end()) {
    traits.flop_per_element = found->second.flop;
    traits.saves_output = found->second.saves_output;
    traits.saves_input = {found->second.saves_input};
  }
  if (is_comparison(node.kind)) traits.type = ElementType::boolean;
  const auto x = grouped_operands({node.inputs[0]});
  set(node, 0, builder_->elementwise(operator_name(node), node.kind, x.tensors, traits), x.groups);
}

void Binder::on_nary(const Node& node) {
  if (node.inputs.empty() || !needs(node, node.inputs.size())) return;
  if (node.kind == "Add" && fold_bias(node)) return;
  if (node.kind == "Add" || node.kind == "PRelu") find_unit_weight(node);
  if (node.inputs.size() == 1) return alias(node, 0, node.inputs[0]);
  std::vector<int> chosen;
  std::size_t rank = 0;
  for (const int index : node.inputs) {
    const Value& value = values_[index];
    const bool one = std::all_of(value.shape.begin(), value.shape.end(), [](std::int64_t size) { return size == 1; });
    rank = std::max(rank, value.shape.size());
    if (value.kind != Value::Kind::constant || !one) chosen.push_back(index);
  }
  if (chosen.empty()) chosen.push_back(node.inputs[0]);
  const auto [operands, groups] = grouped_operands(chosen);
  ElementwiseTraits traits;
  const std::string& kind = node.kind;
  const bool both = operands.size() > 1;
  if (kind == "Mul" || kind == "Div" || kind == "Max" || kind == "Min" || kind == "PRelu") {
    if (both)
      traits.saves_input.assign(operands.size(), true);
    else if (kind == "Max" || kind == "Min")
      traits.saves_output = true;
    else if (kind == "Div" && in(node, 1).kind != Value::Kind::constant)
      traits.saves_output = true;  // constant / x
  } else if (kind == "Pow") {
    traits.flop_per_element = 4;
    traits.saves_input.assign(operands.size(), true);
  } else if (is_comparison(kind)) {
    traits.type = ElementType::boolean;
  }
  const auto type = builder_->tensor(operands.front()).type;
  if (!both && !traits.type) traits.type = type;
  const auto y = builder_->elementwise(operator_name(node), kind, operands, traits);
  set(node, 0, groups.empty() ? with_rank(y, operator_name(node), rank) : y, groups);
}

/// Numbers of many dimensions of size 1 raise the rank of a result they are added to.
TensorId Binder::with_rank(TensorId tensor, const std::string& name, std::size_t rank) {
  Shape shape = builder_->tensor(tensor).shape;
  if (shape.size() >= rank) return tensor;
  shape.insert(shape.begin(), rank - shape.size(), 1);
  return builder_->reshape(name + "/rank", tensor, shape);
}

/// x W + bias is one operator; only where nobody else reads the product.
bool Binder::fold_bias(const Node& node) {
  if (node.inputs.size() != 2) return false;
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
    Value& bias = in(node, k);
    const int product = node.inputs[1 - k];
    const Value& y = values_[product];
    if (bias.shape.size() != 1 || bias.kind == Value::Kind::tensor || bias.transposed || y.kind != Value::Kind::tensor)
      continue;
    if (bias.kind == Value::Kind::constant && !is_floating(bias.type)) continue;
    const auto& maker = graph_.values[product];
    if (maker.result || maker.consumers.size() != 1 || maker.producer < 0 ||
        graph_.nodes[maker.producer].kind != "MatMul")
      continue;
    if (y.shape.empty() || y.shape.back() != bias.shape[0] || !is_whole(y.groups, y.shape.size() - 1)) continue;
    const bool with_weight = graph_.nodes[maker.producer].inputs.size() == 2 &&
                             values_[graph_.nodes[maker.producer].inputs[1]].kind == Value::Kind::parameter;
    if (!with_weight) continue;
    if (builder_->add_bias(y.tensor, materialise(node.inputs[k], true))) return alias(node, 0, product), true;
  }
  return false;
}

/// A single number of one or more dimensions is a parameter where only a weight stands: the slope of a PRelu, what is
/// added to a product or convolution with one output channel. Elsewhere it is a constant that an exporter wrote so.
void Binder::find_unit_weight(const Node& node) {
  const auto channels_of = [&](int product) -> std::int64_t {
    const int maker = graph_.values[product].producer;
    if (maker < 0 || values_[product].kind != Value::Kind::tensor) return 0;
    const auto& made = graph_.nodes[maker];
    const bool convolution = made.kind == "Conv" || made.kind == "ConvTranspose";
    if (!convolution && made.kind != "MatMul") return 0;
    if (made.inputs.size() != 2 || values_[made.inputs[1]].kind != Value::Kind::parameter) return 0;  // or has a bias
    const Shape& shape = values_[product].shape;
    return shape.size() < 2 ? 0 : convolution ? shape[1] : shape.back();
  };
  for (std::size_t k = 0; k < node.inputs.size() && node.inputs.size() == 2; ++k) {
    const Value& one = in(node, k);
    const bool unit = one.kind == Value::Kind::constant && is_floating(one.type) && !one.shape.empty() &&
                      graph_.values[node.inputs[k]].initializer && element_count(one.shape) == std::int64_t{1};
    const bool weighs = node.kind == "PRelu" ? k == 1 : unit && channels_of(node.inputs[1 - k]) == 1;
    if (unit && weighs) materialise(node.inputs[k], true);
  }
}

void Binder::on_where(const Node& node) {
  if (!needs(node, 3)) return;
  const auto operands = grouped_operands({node.inputs[1], node.inputs[2], node.inputs[0]});
  set(node, 0, builder_->elementwise(operator_name(node), "Where", operands.tensors), operands.groups);
}

void Binder::on_cast(const Node& node) {
  if (!needs(node, 1)) return;
  auto type = cast_type(node);
  if (node.kind == "CastLike" && has(node, 1)) type = in(node, 1).type;
  if (graph_.opset < 6 && !type) type = in(node, 0).type;  // the first opset named types by strings
  if (!type) return fail(node, "casts to a type that no training computes with");
  // The precision of floating-point tensors is the scenario's to choose.
  if (*type == in(node, 0).type || (is_floating(*type) && is_floating(in(node, 0).type)))
    return alias(node, 0, node.inputs[0]);
  ElementwiseTraits traits;
  traits.type = type;
  const TensorId x[] = {operand(node, 0)};
  set(node, 0, builder_->elementwise(operator_name(node), "Cast", x, traits));
}

void Binder::on_dropout(const Node& node) {
  if (!needs(node, 1)) return;
  double ratio = node.real("ratio", 0.5);
  bool training = graph_.opset < 7 && node.integer("is_test", 0) == 0;
  if (graph_.opset >= 12) {
    ratio = has(node, 1) ? scalar(node, 1).value_or(0.5) : 0.5;
    training = has(node, 2) && scalar(node, 2).value_or(1) != 0;
  }
  if (!training || ratio == 0) {
    alias(node, 0, node.inputs[0]);
  } else {
    const auto x = grouped_operands({node.inputs[0]});
    set(node, 0, builder_->elementwise(operator_name(node), "Dropout", x.tensors, {2, false, {}, {}, true}), x.groups);
  }
  if (node.output(1) >= 0) set_unknown_constant(node.outputs[1], shape(node, 0), ElementType::boolean);
}

void Binder::on_identity(const Node& node) {
  if (needs(node, 1)) alias(node, 0, node.inputs[0]);
}

void Binder::on_softmax(const Node& node) {
  if (!needs(node, 1)) return;
  const std::size_t rank = shape(node, 0).size();
  const auto first = axis(node, node.integer("axis", graph_.opset < 13 ? 1 : -1), std::max<std::size_t>(rank, 1));
  if (!first) return;
  const Value value = in(node, 0);
  const bool grouped = !value.groups.empty() && value.groups[*first] == 1 && (graph_.opset >= 13 || *first + 1 == rank);
  if (grouped) {
    const int at = static_cast<int>(first_of(value.groups, *first));
    return set(node, 0, builder_->softmax(operator_name(node), value.tensor, at, node.kind), value.groups);
  }
  const auto x = operand(node, 0);
  const auto y = builder_->softmax(operator_name(node), x, static_cast<int>(*first), node.kind);
  if (graph_.opset < 13 && !builder_->error()) {  // then everything from the axis on is one distribution
    auto& op = builder_->model().operators[builder_->tensor(y).producer];
    for (std::size_t d = *first; d < rank; ++d) {
      for (const auto loop : op.outputs.front().walks[d]) op.dims[loop].splittable = false;
    }
  }
  set(node, 0, y);
}

void Binder::on_layer_norm(const Node& node) {
  if (!needs(node, 1)) return;
  const auto first = axis(node, node.integer("axis", -1), shape(node, 0).size());
  if (!first) return;
  const Value value = in(node, 0);
  const bool grouped = !value.groups.empty() && std::all_of(value.groups.begin() + static_cast<std::ptrdiff_t>(*first),
                                                            value.groups.end(), [](auto g) { return g == 1; });
  const auto x = grouped ? value.tensor : operand(node, 0);
  const int at = static_cast<int>(grouped ? first_of(value.groups, *first) : *first);
  const auto scale = optional_weight(node, 1), bias = optional_weight(node, 2);
  set(node, 0, builder_->normalisation(operator_name(node), x, at, scale, bias, node.kind),
      grouped ? value.groups : std::vector<std::uint8_t>());
}

void Binder::on_channel_norm(const Node& node) {
  if (!needs(node, 1)) return;
  // Instance normalisation is over the positions of each channel; group normalisation takes groups of channels as well.
  const int first = node.kind == "InstanceNormalization" ? 2 : 1;
  if (shape(node, 0).size() < 3) return fail(node, "needs an input of at least three dimensions");
  const auto x = operand(node, 0);
  auto scale = optional_weight(node, 1), bias = optional_weight(node, 2);
  const auto fits = [&](const std::optional<TensorId>& p) {
    return p && builder_->tensor(*p).shape == Shape{shape(node, 0)[1]};
  };
  const bool per_channel = fits(scale) && fits(bias);
  set(node, 0,
      builder_->normalisation(operator_name(node), x, first, per_channel ? scale : std::nullopt,
                              per_channel ? bias : std::nullopt, node.kind));
  if (!per_channel && scale) fail(node, "scale and bias need one element per channel");
}

void Binder::on_batch_norm(const Node& node) {
  if (!needs(node, 5)) return;
  const auto x = operand(node, 0);
  const auto mean = materialise(node.input(3), true, true), variance = materialise(node.input(4), true, true);
  const auto scale = weight(node, 1), bias = weight(node, 2);
  set(node, 0, builder_->batch_normalisation(operator_name(node), x, scale, bias, mean, variance));
  for (std::size_t k = 1; k < node.outputs.size(); ++k) {
    if (node.output(k) >= 0 && shape(node, 0).size() > 1)
      set_unknown_constant(node.outputs[k], {shape(node, 0)[1]}, in(node, 0).type);
  }
}

void Binder::on_pool(const Node& node) {
  if (!needs(node, 1)) return;
  const Shape x = shape(node, 0), kernel = node.integers("kernel_shape");
  if (x.size() < 3 || kernel.size() != x.size() - 2)
    return fail(node, "a pooling needs kernel_shape for each spatial dimension");
  const auto strides = spatial_attribute(node, "strides", kernel.size(), 1),
             dilations = spatial_attribute(node, "dilations", kernel.size(), 1);
  Shape begin, end, out{x[0], x[1]};
  if (!pads_of(node, x, kernel, strides, dilations, begin, end)) return;
  const bool up = node.integer("ceil_mode", 0) != 0;
  bool identity = true;
  for (std::size_t s = 0; s < kernel.size(); ++s) {
    const std::int64_t span = x[s + 2] + begin[s] + end[s] - ((kernel[s] - 1) * dilations[s] + 1);
    if (span < 0) return fail(node, "the kernel of a pooling is larger than its padded input");
    std::int64_t size = (span + (up ? strides[s] - 1 : 0)) / strides[s] + 1;
    if (up && (size - 1) * strides[s] >= x[s + 2] + begin[s]) --size;  // a window may not begin in the padding
    out.push_back(size);
    identity = identity && kernel[s] == 1 && size == x[s + 2];
  }
  if (identity) return alias(node, 0, node.inputs[0]);
  const auto data = operand(node, 0);
  set(node, 0, builder_->pooling(operator_name(node), node.kind, data, out, kernel, node.kind != "AveragePool"));
  if (node.output(1) >= 0) set_unknown_constant(node.outputs[1], out, ElementType::i64);
}

void Binder::on_global_pool(const Node& node) {
  if (!needs(node, 1)) return;
  Shape out = shape(node, 0);
  if (out.size() < 3) return fail(node, "a pooling needs an input of at least three dimensions");
  std::fill(out.begin() + 2, out.end(), 1);
  if (out == shape(node, 0)) return alias(node, 0, node.inputs[0]);
  const auto data = operand(node, 0);
  set(node, 0, builder_->pooling(operator_name(node), node.kind, data, out, {}, node.kind != "GlobalAveragePool"));
}

void Binder::on_reduce(const Node& node) {
  if (!needs(node, 1)) return;
  if (list_unknown(node, "axes", 1)) return fail(node, "the axes of a reduction are not constant");
  auto axes = list(node, "axes", 1).value_or(Shape{});
  const std::size_t rank = shape(node, 0).size();
  bool linear = node.kind == "ReduceSum" || node.kind == "ReduceMean";
  std::optional<ElementType> type;
  if (node.kind == "ArgMax" || node.kind == "ArgMin") {
    axes = {node.integer("axis", 0)};
    type = ElementType::i64;
  } else if (axes.empty() && node.integer("noop_with_empty_axes", 0) != 0) {
    return alias(node, 0, node.inputs[0]);
  }
  std::vector<int> plain;
  for (const auto a : axes) {
    const auto checked = axis(node, a, rank);
    if (!checked) return;
    plain.push_back(static_cast<int>(*checked));
  }
  const auto x = operand(node, 0);
  const auto y =
      builder_->reduction(operator_name(node), node.kind, x, plain, node.integer("keepdims", 1) != 0, linear);
  if (type && !builder_->error()) {  // an index has no gradient
    auto& tensor = builder_->model().tensors[y];
    tensor.type = *type;
    tensor.requires_gradient = false;
    auto& op = builder_->model().operators[tensor.producer];
    op.backward_flop = 0;
    for (auto& access : op.inputs) access.saved = false;
  }
  set(node, 0, y);
}

}  // namespace turnpoint::onnx
