// SPDX-License-Identifier: Apache-2.0
// Operators that stand for several: attention of opset 23 and of ONNX Runtime's optimiser (domain com.microsoft),
// normalisations with their residual sum, losses, quantised products. Each becomes the operators it stands for.
#include <algorithm>

#include "core/import/onnx/binder.h"

namespace turnpoint::onnx {

namespace {

const Dims kHeadsLast{DimName::batch, DimName::sequence, DimName::head, DimName::head_channel};

}  // namespace

const std::map<std::string, Binder::Handler, std::less<>>& Binder::runtime_handlers() {
  static const std::map<std::string, Handler, std::less<>> table{
      {"Attention", &Binder::on_packed_attention},
      {"MultiHeadAttention", &Binder::on_multi_head_attention},
      {"GroupQueryAttention", &Binder::on_group_query_attention},
      {"SkipLayerNormalization", &Binder::on_skip_norm},
      {"SkipSimplifiedLayerNormalization", &Binder::on_skip_norm},
      {"SimplifiedLayerNormalization", &Binder::on_layer_norm},
      {"EmbedLayerNormalization", &Binder::on_embed_norm},
      {"FusedMatMul", &Binder::on_fused_matmul},
      {"FusedGemm", &Binder::on_gemm},
      {"FusedConv", &Binder::on_convolution},
      {"Gelu", &Binder::on_biased_activation},
      {"FastGelu", &Binder::on_biased_activation},
      {"QuickGelu", &Binder::on_biased_activation},
      {"BiasGelu", &Binder::on_biased_activation},
      {"RotaryEmbedding", &Binder::on_first_elementwise},
      {"QuantizeLinear", &Binder::on_first_elementwise},
      {"DequantizeLinear", &Binder::on_first_elementwise},
  };
  return table;
}

/// The operator's arithmetic on its first input; what else it reads (angles, scales) weighs nothing.
void Binder::on_first_elementwise(const Node& node) {
  if (!needs(node, 1)) return;
  const auto x = grouped_operands({node.inputs[0]});
  ElementwiseTraits traits;
  traits.flop_per_element = node.kind == "RotaryEmbedding" ? 3 : 2;
  if (node.kind == "DequantizeLinear") traits.type = ElementType::f32;
  if (node.kind == "QuantizeLinear" || node.kind == "DynamicQuantizeLinear") traits.type = ElementType::u8;
  set(node, 0, builder_->elementwise(operator_name(node), node.kind, x.tensors, traits), x.groups);
  for (std::size_t k = 1; k < node.outputs.size(); ++k)
    if (node.output(k) >= 0) set_unknown_constant(node.outputs[k], {}, k == 1 ? ElementType::f32 : ElementType::u8);
}

void Binder::on_biased_activation(const Node& node) {
  if (!needs(node, 1)) return;
  auto x = operand(node, 0);
  if (has(node, 1)) {
    const auto bias = weight(node, 1);
    if (!builder_->add_bias(x, bias)) {
      const TensorId terms[] = {x, bias};
      x = builder_->elementwise(operator_name(node) + "/bias", "Add", terms);
    }
  }
  ElementwiseTraits traits;
  traits.flop_per_element = 8;
  traits.saves_input = {true};
  set(node, 0, builder_->elementwise(operator_name(node), node.kind, std::span(&x, 1), traits));
}

void Binder::on_fused_matmul(const Node& node) {
  if (!needs(node, 2)) return;
  const bool constant_right = in(node, 1).kind != Value::Kind::tensor && shape(node, 1).size() == 2;
  const auto a = operand(node, 0), b = constant_right ? weight(node, 1) : operand(node, 1);
  set(node, 0,
      builder_->matmul(operator_name(node), a, b, node.integer("transA", 0) != 0, node.integer("transB", 0) != 0));
}

/// Convolutions and products on integers: the same work, scales and zero points aside.
void Binder::on_quantised(const Node& node) {
  const bool scaled = node.kind.rfind("QLinear", 0) == 0;
  const bool convolution = node.kind.find("Conv") != std::string::npos;
  Node plain = node;
  plain.inputs = {node.input(0), node.input(scaled ? 3 : 1)};
  if (convolution && scaled && node.input(8) >= 0) plain.inputs.push_back(node.input(8));
  convolution ? on_convolution(plain) : on_matmul(plain);
}

/// x W + b and further terms: [data, weight, offsets, bias, mask]; where the kernel looks costs nothing.
void Binder::on_deformable_convolution(const Node& node) {
  Node plain = node;
  plain.inputs = {node.input(0), node.input(1), node.input(3)};
  on_convolution(plain);
}

void Binder::on_resampling(const Node& node) {
  const bool grid = node.kind == "GridSample";
  if (!needs(node, 2)) return;
  const Shape x = shape(node, 0), where = shape(node, 1);
  if (x.size() < 3 || where.size() < 2) return fail(node, "needs an image and the places to read");
  Shape out;
  if (grid) {
    out.assign(x.begin(), x.begin() + 2);
    out.insert(out.end(), where.begin() + 1, where.end() - 1);
  } else {
    out = {where[0], x[1], node.integer("output_height", 1), node.integer("output_width", 1)};
  }
  if (!element_count(out)) return fail(node, "its result has an impossible shape");
  const TensorId operands[] = {operand(node, 0), operand(node, 1)};
  set(node, 0, builder_->opaque(operator_name(node), node.kind, operands, out, in(node, 0).type));
}

// --- normalisations ------------------------------------------------------------------------------------------------

void Binder::on_skip_norm(const Node& node) {
  if (!needs(node, 3)) return;
  const bool simplified = node.kind == "SkipSimplifiedLayerNormalization";
  const auto x = operand(node, 0), skip = operand(node, 1);
  const std::size_t bias_at = simplified ? 3 : 4;
  if (has(node, bias_at)) {
    const auto bias = weight(node, bias_at);
    if (!builder_->add_bias(x, bias)) builder_->warn("the bias of '" + node.name + "' is left out");
  }
  const TensorId terms[] = {x, skip};
  const auto sum = builder_->elementwise(operator_name(node) + "/sum", "Add", terms);
  const int last = static_cast<int>(shape(node, 0).size()) - 1;
  const auto scale = optional_weight(node, 2),
             shift = simplified ? std::optional<TensorId>() : optional_weight(node, 3);
  set(node, 0,
      builder_->normalisation(operator_name(node), sum, last, scale, shift,
                              simplified ? "RMSNormalization" : "LayerNormalization"));
  if (node.output(3) >= 0) set(node, 3, sum);
}

void Binder::on_embed_norm(const Node& node) {
  if (!needs(node, 1) || !has(node, 2) || !has(node, 3)) return fail(node, "lacks its tables");
  const auto name = operator_name(node);
  const auto ids = operand(node, 0);
  std::vector<TensorId> terms{
      builder_->embedding(name + "/word", weight(node, 2), ids),
      builder_->embedding(name + "/position", weight(node, 3), has(node, 8) ? operand(node, 8) : ids)};
  if (has(node, 4))
    terms.push_back(builder_->embedding(name + "/segment", weight(node, 4), has(node, 1) ? operand(node, 1) : ids));
  const auto sum = builder_->elementwise(name + "/sum", "Add", terms);
  const int last = static_cast<int>(builder_->tensor(sum).shape.size()) - 1;
  set(node, 0, builder_->normalisation(name, sum, last, optional_weight(node, 5), optional_weight(node, 6)));
  const Shape rows = shape(node, 0).empty() ? Shape() : Shape{shape(node, 0)[0]};
  if (node.output(1) >= 0) set_unknown_constant(node.outputs[1], rows, ElementType::i32);
  if (node.output(2) >= 0) set(node, 2, sum);
}

// --- attention -----------------------------------------------------------------------------------------------------

/// [batch, sequence, heads x channels] as [batch, head, sequence, channel]; four dimensions stay.
std::optional<TensorId> Binder::by_head(const Node& node, TensorId x, std::int64_t heads, const char* part) {
  const Shape from = builder_->tensor(x).shape;
  if (from.size() == 4) return x;
  if (from.size() != 3 || heads < 1 || from[2] % heads != 0) {
    fail(node, "its heads do not divide its channels");
    return std::nullopt;
  }
  const std::string name = operator_name(node) + "/" + part;
  const auto apart = builder_->reshape(name + "/heads", x, {from[0], from[1], heads, from[2] / heads}, kHeadsLast);
  return builder_->transpose(name, apart, {0, 2, 1, 3});
}

/// softmax(q k^T) v over [batch, head, sequence, channel], several query heads to a key head where there are fewer. The
/// scaling and the mask live in the softmax. Sets outputs 1 and 2 (keys and values seen) where they are wanted.
void Binder::attend(const Node& node, TensorId q, TensorId k, TensorId v, bool merge) {
  const auto name = operator_name(node);
  const Shape qs = builder_->tensor(q).shape, ks = builder_->tensor(k).shape, vs = builder_->tensor(v).shape;
  if (qs.size() != 4 || ks.size() != 4 || vs.size() != 4 || qs[0] != ks[0] || ks[1] < 1 || qs[1] % ks[1] != 0 ||
      qs[3] != ks[3] || vs[1] != ks[1] || vs[2] != ks[2])
    return fail(node, "queries, keys and values do not fit each other");
  const std::int64_t shared = qs[1] / ks[1];
  TensorId keys = k, values = v;
  if (shared > 1) {
    const Dims grouped{DimName::batch, DimName::head, DimName::group, DimName::sequence, DimName::head_channel};
    q = builder_->reshape(name + "/groups", q, {qs[0], ks[1], shared, qs[2], qs[3]}, grouped);
    keys = builder_->reshape(name + "/keys", k, {ks[0], ks[1], 1, ks[2], ks[3]});
    values = builder_->reshape(name + "/values", v, {vs[0], vs[1], 1, vs[2], vs[3]});
  }
  const auto scores = builder_->matmul(name + "/scores", q, keys, false, true);
  const int last = shared > 1 ? 4 : 3;
  auto y = builder_->matmul(name + "/context", builder_->softmax(name + "/softmax", scores, last), values);
  if (shared > 1) y = builder_->reshape(name + "/together", y, {qs[0], qs[1], qs[2], vs[3]});
  if (merge && !builder_->error()) {
    y = builder_->transpose(name + "/by_position", y, {0, 2, 1, 3});
    y = builder_->reshape(name + "/merged", y, {qs[0], qs[2], qs[1] * vs[3]});
  }
  set(node, 0, y);
  if (node.output(1) >= 0) set(node, 1, k);
  if (node.output(2) >= 0) set(node, 2, v);
  if (node.output(3) >= 0)
    set(node, 3, shared > 1 ? builder_->reshape(name + "/all", scores, {qs[0], qs[1], qs[2], ks[2]}) : scores);
}

TensorId Binder::with_past(const Node& node, std::size_t past, TensorId now, const char* part) {
  if (!has(node, past) || shape(node, past).size() != 4) return now;
  const TensorId both[] = {operand(node, past), now};
  return builder_->concat(operator_name(node) + "/" + part, both, 2);
}

/// Opset 23: Q, K, V, mask, past key, past value.
void Binder::on_attention(const Node& node) {
  if (!needs(node, 3)) return;
  const bool merge = shape(node, 0).size() == 3;
  const auto q = by_head(node, operand(node, 0), node.integer("q_num_heads", 0), "q");
  const auto k = by_head(node, operand(node, 1), node.integer("kv_num_heads", 0), "k");
  const auto v = by_head(node, operand(node, 2), node.integer("kv_num_heads", 0), "v");
  if (q && k && v)
    attend(node, *q, with_past(node, 4, *k, "keys_so_far"), with_past(node, 5, *v, "values_so_far"), merge);
}

void Binder::on_multi_head_attention(const Node& node) {
  if (!needs(node, 3)) return fail(node, "packed queries, keys and values are not supported: turn off that fusion");
  const auto heads = node.integer("num_heads", 0);
  std::vector<TensorId> parts{operand(node, 0), operand(node, 1), operand(node, 2)};
  if (has(node, 3)) {
    std::vector<std::int64_t> sizes;
    for (const auto part : parts) {
      const Shape& own = builder_->tensor(part).shape;
      if (own.empty()) return fail(node, "its heads do not divide its channels");
      sizes.push_back(own.back());
    }
    const auto biases = builder_->split(operator_name(node) + "/bias", weight(node, 3), 0, sizes);
    for (std::size_t i = 0; i < 3 && biases.size() == 3; ++i) {
      const TensorId terms[] = {parts[i], biases[i]};
      parts[i] = builder_->elementwise(operator_name(node) + "/add", "Add", terms);
    }
  }
  const auto q = by_head(node, parts[0], heads, "q"), k = by_head(node, parts[1], heads, "k"),
             v = by_head(node, parts[2], heads, "v");
  if (q && k && v)
    attend(node, *q, with_past(node, 6, *k, "keys_so_far"), with_past(node, 7, *v, "values_so_far"), true);
}

void Binder::on_group_query_attention(const Node& node) {
  if (!needs(node, 1)) return;
  const auto heads = node.integer("num_heads", 0), shared = node.integer("kv_num_heads", heads);
  auto q = operand(node, 0);
  TensorId k, v;
  if (has(node, 1) && has(node, 2)) {
    k = operand(node, 1), v = operand(node, 2);
  } else {
    const Shape packed = builder_->tensor(q).shape;
    if (packed.size() != 3 || heads < 1 || shared < 1 || std::max(heads, shared) > packed[2] ||
        packed[2] % (heads + 2 * shared) != 0)
      return fail(node, "its packed projections do not fit its heads");
    const auto channels = packed[2] / (heads + 2 * shared);
    const std::int64_t sizes[] = {heads * channels, shared * channels, shared * channels};
    const auto parts = builder_->split(operator_name(node) + "/parts", q, 2, sizes);
    if (parts.size() != 3) return;
    q = parts[0], k = parts[1], v = parts[2];
  }
  const auto qh = by_head(node, q, heads, "q"), kh = by_head(node, k, shared, "k"), vh = by_head(node, v, shared, "v");
  if (qh && kh && vh)
    attend(node, *qh, with_past(node, 3, *kh, "keys_so_far"), with_past(node, 4, *vh, "values_so_far"), true);
}

/// ONNX Runtime's: one weight makes queries, keys and values.
void Binder::on_packed_attention(const Node& node) {
  if (!needs(node, 2)) return;
  const auto heads = node.integer("num_heads", 0);
  auto sizes = node.integers("qkv_hidden_sizes");
  const Shape w = shape(node, 1);
  if (w.size() != 2) return fail(node, "its weight is no matrix");
  if (sizes.empty()) sizes.assign(3, w[1] / 3);
  const auto part_of_all = [&](std::int64_t size) { return size >= 1 && size <= w[1]; };
  if (sizes.size() != 3 || !std::all_of(sizes.begin(), sizes.end(), part_of_all) || sizes[0] + sizes[1] + sizes[2] != w[1])
    return fail(node, "its weight does not fit three projections");
  const auto all = builder_->linear(operator_name(node) + "/projection", operand(node, 0), weight(node, 1),
                                    optional_weight(node, 2));
  const auto parts = builder_->split(operator_name(node) + "/parts", all, 2, sizes);
  if (parts.size() != 3 || builder_->error()) return;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < 3; begin += sizes[i++]) remember_cut(all, begin, parts[i]);
  const auto q = by_head(node, parts[0], heads, "q"), k = by_head(node, parts[1], heads, "k"),
             v = by_head(node, parts[2], heads, "v");
  Node alone = node;  // its second output is the past in a form of its own
  alone.outputs.resize(1);
  if (q && k && v) attend(alone, *q, *k, *v, true);
}

// --- losses --------------------------------------------------------------------------------------------------------

void Binder::on_loss(const Node& node) {
  if (!needs(node, 2)) return;
  const Shape scores = shape(node, 0);
  if (scores.size() < 2) return fail(node, "needs scores of at least two dimensions");
  auto x = operand(node, 0);
  if (scores.size() > 2) {
    std::vector<int> order{0};
    for (int d = 2; d < static_cast<int>(scores.size()); ++d) order.push_back(d);
    order.push_back(1);
    x = builder_->transpose(operator_name(node) + "/classes_last", x, order);
  }
  const bool each = node.text("reduction", "mean") == "none";
  if (each) {
    const TensorId operands[] = {x, operand(node, 1)};
    set(node, 0, builder_->opaque(operator_name(node), node.kind, operands, shape(node, 1), in(node, 0).type));
  } else {
    set(node, 0, builder_->cross_entropy(operator_name(node), x, operand(node, 1)));
  }
  if (node.output(1) >= 0)
    set(node, 1, builder_->softmax(operator_name(node) + "/log_probabilities", operand(node, 0), 1, "LogSoftmax"));
}

}  // namespace turnpoint::onnx
