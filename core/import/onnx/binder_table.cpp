// SPDX-License-Identifier: Apache-2.0
// Which handler builds which kind of node, and the kinds that have none of their own.
#include <algorithm>
#include <cmath>

#include "core/import/onnx/binder.h"

namespace turnpoint::onnx {

const std::map<std::string, Binder::Handler, std::less<>>& Binder::handlers() {
  static const auto table = [] {
    std::map<std::string, Handler, std::less<>> t;
    const auto add = [&](Handler handler, std::initializer_list<const char*> kinds) {
      for (const char* kind : kinds) t[kind] = handler;
    };
    add(&Binder::on_convolution, {"Conv", "ConvTranspose"});
    add(&Binder::on_gemm, {"Gemm"});
    add(&Binder::on_matmul, {"MatMul"});
    add(&Binder::on_einsum, {"Einsum"});
    add(&Binder::on_recurrent, {"LSTM", "GRU", "RNN"});
    add(&Binder::on_unary, {"Relu",
                            "LeakyRelu",
                            "Elu",
                            "Selu",
                            "Celu",
                            "Sigmoid",
                            "Tanh",
                            "Exp",
                            "Sqrt",
                            "Reciprocal",
                            "HardSigmoid",
                            "Log",
                            "Erf",
                            "Gelu",
                            "HardSwish",
                            "Softplus",
                            "Softsign",
                            "Mish",
                            "Swish",
                            "Abs",
                            "Clip",
                            "ThresholdedRelu",
                            "Shrink",
                            "Sin",
                            "Cos",
                            "Tan",
                            "Asin",
                            "Acos",
                            "Atan",
                            "Sinh",
                            "Cosh",
                            "Asinh",
                            "Acosh",
                            "Atanh",
                            "Neg",
                            "Floor",
                            "Ceil",
                            "Round",
                            "Sign",
                            "LRN",
                            "LpNormalization",
                            "MeanVarianceNormalization",
                            "Not",
                            "IsNaN",
                            "IsInf"});
    add(&Binder::on_nary, {"Add",       "Sub",         "Mul",  "Div",   "Pow",   "Mod",      "Max",
                           "Min",       "Sum",         "Mean", "PRelu", "Equal", "Greater",  "GreaterOrEqual",
                           "Less",      "LessOrEqual", "And",  "Or",    "Xor",   "BitShift", "BitwiseAnd",
                           "BitwiseOr", "BitwiseXor"});
    add(&Binder::on_where, {"Where"});
    add(&Binder::on_cast, {"Cast", "CastLike"});
    add(&Binder::on_dropout, {"Dropout"});
    add(&Binder::on_identity, {"Identity"});
    add(&Binder::on_softmax, {"Softmax", "LogSoftmax", "Hardmax"});
    add(&Binder::on_layer_norm, {"LayerNormalization", "RMSNormalization"});
    add(&Binder::on_channel_norm, {"InstanceNormalization", "GroupNormalization"});
    add(&Binder::on_batch_norm, {"BatchNormalization"});
    add(&Binder::on_pool, {"MaxPool", "AveragePool", "LpPool"});
    add(&Binder::on_global_pool, {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"});
    add(&Binder::on_reduce, {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                             "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin"});
    add(&Binder::on_reshape, {"Reshape"});
    add(&Binder::on_flatten, {"Flatten"});
    add(&Binder::on_transpose, {"Transpose"});
    add(&Binder::on_squeeze, {"Squeeze"});
    add(&Binder::on_unsqueeze, {"Unsqueeze"});
    add(&Binder::on_expand, {"Expand"});
    add(&Binder::on_tile, {"Tile"});
    add(&Binder::on_concat, {"Concat"});
    add(&Binder::on_split, {"Split"});
    add(&Binder::on_split_to_sequence, {"SplitToSequence"});
    add(&Binder::on_sequence_at, {"SequenceAt"});
    add(&Binder::on_slice, {"Slice"});
    add(&Binder::on_pad, {"Pad"});
    add(&Binder::on_resize, {"Resize", "Upsample"});
    add(&Binder::on_space_depth, {"DepthToSpace", "SpaceToDepth"});
    add(&Binder::on_gather, {"Gather"});
    add(&Binder::on_constant_of_shape, {"ConstantOfShape"});
    add(&Binder::on_constant, {"Constant"});
    add(&Binder::on_known_opaque,
        {"TopK", "CumSum", "Trilu", "GatherElements", "GatherND", "ScatterND", "ScatterElements", "Scatter",
         "ReverseSequence", "OneHot", "EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli"});
    add(&Binder::on_range, {"Range"});
    add(&Binder::on_random, {"RandomNormal", "RandomUniform"});
    add(&Binder::on_data_dependent, {"NonZero", "NonMaxSuppression", "Unique", "Compress", "StringNormalizer"});
    add(&Binder::on_attention, {"Attention"});
    add(&Binder::on_layer_norm, {"SimplifiedLayerNormalization"});  // ONNX Runtime writes it without its domain
    add(&Binder::on_first_elementwise,
        {"RotaryEmbedding", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"});
    add(&Binder::on_quantised, {"QLinearConv", "ConvInteger", "QLinearMatMul", "MatMulInteger"});
    add(&Binder::on_deformable_convolution, {"DeformConv"});
    add(&Binder::on_resampling, {"GridSample", "RoiAlign"});
    add(&Binder::on_loss, {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"});
    add(&Binder::on_refused, {"SequenceMap"});
    return t;
  }();
  return table;
}

void Binder::on_constant_of_shape(const Node& node) {
  if (!needs(node, 1)) return;
  auto dims = constant_integers(node, 0);
  if (!dims) return fail(node, "its shape depends on data");
  for (const auto size : *dims) {
    if (size < 0 || size > (std::int64_t{1} << 48))
      return fail(node, "makes a dimension of size " + std::to_string(size));
  }
  const auto* attribute = node.attribute("value");
  const auto type =
      attribute && attribute->tensor && attribute->tensor->type ? *attribute->tensor->type : ElementType::f32;
  if (node.output(0) >= 0) set_unknown_constant(node.outputs[0], *dims, type);
}

void Binder::on_constant(const Node& node) {
  const auto* attribute = node.attribute("value");
  const bool tensor = attribute && attribute->tensor && attribute->tensor->type;
  if (!tensor || node.output(0) < 0) return fail(node, "holds no tensor of numbers");
  double elements = 1;
  for (const auto size : attribute->tensor->dims) {
    if (size < 0 || size > (std::int64_t{1} << 48)) return fail(node, "holds a tensor with an impossible dimension");
    elements *= static_cast<double>(size);
  }
  if (elements > 1e18) return fail(node, "holds a tensor of more than 10^18 elements");
  set_unknown_constant(node.outputs[0], attribute->tensor->dims, *attribute->tensor->type);
}

void Binder::on_if(const Node& node) {
  const int condition = node.inputs[0];
  const bool known = values_[condition].kind == Value::Kind::constant && values_[condition].data;
  const bool then = takes_then(condition);
  if (!known) builder_->warn("the condition of '" + node.name + "' depends on data: its then-branch is taken");
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    if (node.outputs[k] < 0) continue;
    const int chosen = node.input(1 + k + (then ? 0 : node.outputs.size()));
    if (chosen < 0 || values_[chosen].kind == Value::Kind::missing)
      return fail(node, "the branch taken makes no output " + std::to_string(k));
    values_[node.outputs[k]] = values_[chosen];
  }
}

void Binder::on_range(const Node& node) {
  const auto begin = scalar(node, 0), end = scalar(node, 1), step = scalar(node, 2);
  if (!begin || !end || !step) return on_data_dependent(node);
  const double count = std::ceil((*end - *begin) / *step);
  if (!(count >= 1 && count < 1e12)) return fail(node, "makes an impossible number of elements");
  if (node.output(0) >= 0) set_unknown_constant(node.outputs[0], {static_cast<std::int64_t>(count)}, in(node, 0).type);
}

void Binder::on_random(const Node& node) {
  const auto dims = node.integers("shape");
  for (const auto size : dims) {
    if (size < 1 || size > (std::int64_t{1} << 40))
      return fail(node, "makes a dimension of size " + std::to_string(size));
  }
  if (node.output(0) >= 0) set_unknown_constant(node.outputs[0], dims, ElementType::f32);
}

void Binder::on_data_dependent(const Node& node) {
  fail(node, "the size of its result depends on data, so no shape is known");
}

void Binder::on_known_opaque(const Node& node) {
  if (!needs(node, 1)) return;
  Shape out = shape(node, 0);
  ElementType type = in(node, 0).type;
  const std::string& kind = node.kind;
  if (kind == "TopK") {
    const auto at = axis(node, node.integer("axis", -1), out.size());
    const auto k =
        node.attribute("k") ? std::optional<double>(static_cast<double>(node.integer("k", 1))) : scalar(node, 1);
    if (!at) return;
    if (!k || !(*k >= 1) || *k > static_cast<double>(out[*at]))
      return fail(node, "its k is not constant or out of range");
    out[*at] = static_cast<std::int64_t>(*k);
  } else if (kind == "GatherElements") {
    if (!needs(node, 2)) return;
    out = shape(node, 1);
  } else if (kind == "GatherND") {
    if (!needs(node, 2)) return;
    const Shape indices = shape(node, 1);
    const auto batch = node.integer("batch_dims", 0);
    const auto rank = static_cast<std::int64_t>(out.size());
    const auto depth = indices.empty() || std::min(batch, indices.back()) < 0 || std::max(batch, indices.back()) > rank
                           ? -1
                           : indices.back() + batch;
    if (depth < 0 || depth > rank) return fail(node, "its indices do not fit its data");
    Shape result(indices.begin(), indices.end() - 1);
    result.insert(result.end(), out.begin() + depth, out.end());
    out = result;
  } else if (kind == "OneHot") {
    const auto depth = scalar(node, 1);
    auto at = node.integer("axis", -1);
    if (at < 0) at += static_cast<std::int64_t>(out.size()) + 1;
    if (!depth || !(*depth >= 1 && *depth < 1e12) || at < 0 || at > static_cast<std::int64_t>(out.size()))
      return fail(node, "its depth is not constant or out of range");
    out.insert(out.begin() + at, static_cast<std::int64_t>(*depth));
    type = has(node, 2) ? in(node, 2).type : ElementType::f32;
  }
  std::vector<TensorId> operands;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (has(node, i) && in(node, i).kind != Value::Kind::constant) operands.push_back(operand(node, i));
  }
  if (operands.empty()) operands.push_back(operand(node, 0));
  set(node, 0, builder_->opaque(operator_name(node), kind, operands, out, type));
  if (node.output(1) >= 0) set_unknown_constant(node.outputs[1], out, ElementType::i64);
}

void Binder::on_refused(const Node& node) {
  fail(node, node.kind + " holds graphs of its own, which are not supported: export the model without control flow");
}

void Binder::on_unknown(const Node& node) {
  if (node.inputs.empty() || !has(node, 0))
    return fail(node, "operators of this kind are unknown and it has no input to take a shape from");
  unknown_kinds_.insert(node.domain.empty() ? node.kind : node.domain + "." + node.kind);
  std::vector<TensorId> operands;
  Shape widest = shape(node, 0);
  ElementType type = in(node, 0).type;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!has(node, i)) continue;
    const Value& value = in(node, i);
    operands.push_back(value.kind == Value::Kind::constant && is_floating(value.type) && value.shape.size() > 1
                           ? weight(node, i)
                           : operand(node, i));
  }
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    const int output = node.output(k);
    if (output < 0) continue;
    Shape out = widest;
    ElementType out_type = type;
    // The file may declare what we do not know.
    if (const auto* declared = graph_.values[output].declared; declared && declared->has_shape) {
      Shape written;
      for (std::size_t d = 0; d < declared->shape.size(); ++d) {
        const auto size = declared->shape[d].value;
        const bool batch = d == 0 && !widest.empty() && (size <= 0 || size == plan_.fixed_batch);
        written.push_back(batch ? widest[0] : size);
      }
      if (std::all_of(written.begin(), written.end(), [](std::int64_t size) { return size > 0; })) out = written;
      if (declared->type) out_type = *declared->type;
    }
    set(node, k, builder_->opaque(operator_name(node), node.kind, operands, out, out_type));
  }
}

}  // namespace turnpoint::onnx
