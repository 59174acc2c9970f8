// SPDX-License-Identifier: Apache-2.0
#include "core/import/transformer/transformer.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/model/builder.h"

namespace turnpoint {

namespace {

using Walks = std::vector<std::vector<std::uint8_t>>;

/// Loop dimensions collected while walks refer to them by index.
struct LoopDims {
  std::vector<LoopDimension> list;
  std::uint8_t add(DimName name, std::int64_t size, DimRole role = DimRole::parallel, bool splittable = true) {
    list.push_back({name, role, size, splittable});
    return static_cast<std::uint8_t>(list.size() - 1);
  }
};

struct Builder {
  const TransformerShape& shape;
  ModelBuilder b;
  std::int64_t batch, sequence;
  std::string prefix;  ///< "layer3/attention/"

  std::string path(const std::string& leaf) const { return prefix + leaf; }
  void enter(const std::string& scope) {
    b.set_scope(scope);
    prefix = scope + "/";
  }

  TensorId norm(const std::string& leaf, TensorId x, std::int64_t channels, int axis, TransformerShape::Norm kind) {
    const TensorId scale = b.parameter(path(leaf) + ".weight", {channels}, {DimName::channel});
    if (kind == TransformerShape::Norm::rms) return b.normalisation(path(leaf), x, axis, scale, {}, "RMSNorm");
    const TensorId bias = b.parameter(path(leaf) + ".bias", {channels}, {DimName::channel});
    return b.normalisation(path(leaf), x, axis, scale, bias, "LayerNorm");
  }
  TensorId norm(const std::string& leaf, TensorId x) { return norm(leaf, x, shape.hidden, 2, shape.norm); }

  TensorId linear(const std::string& leaf, TensorId x, std::int64_t in, std::int64_t out, bool with_bias) {
    const TensorId w = b.parameter(path(leaf) + ".weight", {in, out}, {DimName::in_channel, DimName::out_channel});
    std::optional<TensorId> bias;
    if (with_bias) bias = b.parameter(path(leaf) + ".bias", {out}, {DimName::out_channel});
    return b.linear(path(leaf), x, w, bias, false, DimName::channel);
  }

  TensorId add(const std::string& leaf, std::initializer_list<TensorId> operands) {
    return b.elementwise(path(leaf), "Add", std::vector<TensorId>(operands),
                         {.flop_per_element = double(operands.size() - 1)});
  }

  // Head dimensions: keys and values have kv_heads of them; queries have a further group dimension where several
  // queries share a key, so that splitting the heads splits all three alike. With a single key head the group is the
  // only head dimension.
  bool has_kv_head() const { return shape.kv_heads > 1 || groups() == 1; }
  std::int64_t groups() const { return shape.heads / shape.kv_heads; }
  bool has_group() const { return groups() > 1; }
  DimName group_name() const { return has_kv_head() ? DimName::group : DimName::head; }

  /// The head dimensions of a query-like tensor, appended to the loop dimensions.
  std::vector<std::uint8_t> query_heads(LoopDims& dims, DimRole role = DimRole::parallel) const {
    std::vector<std::uint8_t> walk;
    if (has_kv_head()) walk.push_back(dims.add(DimName::head, shape.kv_heads, role));
    if (has_group()) walk.push_back(dims.add(group_name(), groups(), role));
    return walk;
  }
  std::vector<DimName> query_names() const {
    std::vector<DimName> names = {DimName::batch};
    if (has_kv_head()) names.push_back(DimName::head);
    if (has_group()) names.push_back(group_name());
    return names;
  }

  /// x [batch, sequence, hidden] to [batch, heads..., sequence, head_channel].
  TensorId project(const std::string& leaf, TensorId x, bool query) {
    LoopDims dims;
    const auto n = dims.add(DimName::batch, batch);
    std::vector<std::uint8_t> heads;
    if (query)
      heads = query_heads(dims);
    else if (has_kv_head())
      heads.push_back(dims.add(DimName::head, shape.kv_heads));
    const auto s = dims.add(DimName::sequence, sequence);
    const auto d = dims.add(DimName::head_channel, shape.head_channels);
    const auto k = dims.add(DimName::in_channel, shape.hidden, DimRole::reduction);
    std::vector<std::uint8_t> merged = heads;
    merged.push_back(d);
    Walks out = {{n}};
    std::vector<DimName> names = {DimName::batch};
    for (const auto head : heads) {
      out.push_back({head});
      names.push_back(dims.list[head].name);
    }
    out.push_back({s});
    out.push_back({d});
    names.push_back(DimName::sequence);
    names.push_back(DimName::head_channel);
    const std::int64_t width = (query ? shape.heads : shape.kv_heads) * shape.head_channels;
    const TensorId w =
        b.parameter(path(leaf) + ".weight", {shape.hidden, width}, {DimName::in_channel, DimName::out_channel});
    std::optional<TensorId> bias;
    if (shape.qkv_bias) bias = b.parameter(path(leaf) + ".bias", {width}, {DimName::out_channel});
    return b.contraction(path(leaf), "Linear", dims.list, x, {{n}, {s}, {k}}, w, {{k}, merged}, out, names, bias,
                         {merged});
  }

  // The channels of a head are the inner part of a merged dimension in the projections around, where they cannot be
  // split; splitting them here would only add layouts that nothing produces, and changed no frontier we tried.
  TensorId scores(TensorId q, TensorId k) {
    LoopDims dims;
    const auto n = dims.add(DimName::batch, batch);
    const auto heads = query_heads(dims);
    const auto s = dims.add(DimName::sequence, sequence);
    const auto t = dims.add(DimName::key_sequence, sequence, DimRole::parallel, false);
    const auto d = dims.add(DimName::head_channel, shape.head_channels, DimRole::reduction, false);
    Walks a = {{n}}, key = {{n}};
    for (const auto head : heads) a.push_back({head});
    if (has_kv_head()) key.push_back({heads.front()});
    Walks out = a;
    a.insert(a.end(), {{s}, {d}});
    key.insert(key.end(), {{t}, {d}});
    out.insert(out.end(), {{s}, {t}});
    auto names = query_names();
    names.insert(names.end(), {DimName::sequence, DimName::key_sequence});
    return b.contraction(path("scores"), "MatMul", dims.list, q, a, k, key, out, names);
  }

  TensorId context(TensorId probabilities, TensorId v) {
    LoopDims dims;
    const auto n = dims.add(DimName::batch, batch);
    const auto heads = query_heads(dims);
    const auto s = dims.add(DimName::sequence, sequence);
    const auto d = dims.add(DimName::head_channel, shape.head_channels, DimRole::parallel, false);
    const auto t = dims.add(DimName::key_sequence, sequence, DimRole::reduction, false);
    Walks a = {{n}}, value = {{n}};
    for (const auto head : heads) a.push_back({head});
    if (has_kv_head()) value.push_back({heads.front()});
    Walks out = a;
    a.insert(a.end(), {{s}, {t}});
    value.insert(value.end(), {{t}, {d}});
    out.insert(out.end(), {{s}, {d}});
    auto names = query_names();
    names.insert(names.end(), {DimName::sequence, DimName::head_channel});
    return b.contraction(path("context"), "MatMul", dims.list, probabilities, a, v, value, out, names);
  }

  /// [batch, heads..., sequence, head_channel] back to [batch, sequence, hidden].
  TensorId merge_heads(TensorId x) {
    LoopDims dims;
    const auto n = dims.add(DimName::batch, batch);
    const auto s = dims.add(DimName::sequence, sequence);
    const auto o = dims.add(DimName::out_channel, shape.hidden);
    const auto heads = query_heads(dims, DimRole::reduction);
    const auto d = dims.add(DimName::head_channel, shape.head_channels, DimRole::reduction);
    std::vector<std::uint8_t> merged = heads;
    merged.push_back(d);
    Walks a = {{n}};
    for (const auto head : heads) a.push_back({head});
    a.insert(a.end(), {{s}, {d}});
    const TensorId w = b.parameter(path("out.weight"), {shape.heads * shape.head_channels, shape.hidden},
                                   {DimName::in_channel, DimName::out_channel});
    std::optional<TensorId> bias;
    if (shape.output_bias) bias = b.parameter(path("out.bias"), {shape.hidden}, {DimName::out_channel});
    return b.contraction(path("out"), "Linear", dims.list, x, a, w, {merged, {o}}, {{n}, {s}, {o}},
                         {DimName::batch, DimName::sequence, DimName::channel}, bias, {{o}});
  }

  TensorId attention(TensorId x) {
    TensorId q = project("q", x, true), k = project("k", x, false);
    if (shape.query_key_norm) {
      q = norm("q_norm", q, shape.head_channels, int(b.tensor(q).shape.size()) - 1, TransformerShape::Norm::rms);
      k = norm("k_norm", k, shape.head_channels, int(b.tensor(k).shape.size()) - 1, TransformerShape::Norm::rms);
    }
    const TensorId v = project("v", x, false);
    const TensorId s = scores(q, k);
    const TensorId probabilities = b.softmax(path("softmax"), s, int(b.tensor(s).shape.size()) - 1);
    return merge_heads(context(probabilities, v));
  }

  TensorId mlp(TensorId x) {
    const bool relu = shape.activation.find("relu") != std::string::npos;
    if (shape.mlp == TransformerShape::Mlp::gated) {
      const TensorId gate = linear("gate", x, shape.hidden, shape.intermediate, shape.mlp_bias);
      const TensorId up = linear("up", x, shape.hidden, shape.intermediate, shape.mlp_bias);
      const TensorId operands[] = {gate, up};
      const TensorId product = b.elementwise(path("act"), shape.activation + "*up", operands,
                                             {.flop_per_element = 6, .saves_input = {true, true}});
      return linear("down", product, shape.intermediate, shape.hidden, shape.mlp_bias);
    }
    const TensorId up = linear("up", x, shape.hidden, shape.intermediate, shape.mlp_bias);
    ElementwiseTraits traits{.flop_per_element = relu ? 1.0 : 8.0, .saves_output = relu, .saves_input = {!relu}};
    const TensorId operands[] = {up};
    const TensorId hidden = b.elementwise(path("act"), shape.activation, operands, traits);
    return linear("down", hidden, shape.intermediate, shape.hidden, shape.mlp_bias);
  }

  TensorId layer(std::int64_t index, TensorId x) {
    const std::string scope = fmt::format("layer{}", index);
    enter(scope + "/attention");
    if (shape.block == TransformerShape::Block::parallel) {
      const TensorId normed = norm("norm", x);
      const TensorId attended = attention(normed);
      enter(scope + "/mlp");
      return add("add", {x, attended, mlp(normed)});
    }
    if (shape.block == TransformerShape::Block::post_norm) {
      const TensorId attended = norm("norm", add("add", {x, attention(x)}));
      enter(scope + "/mlp");
      return norm("norm", add("add", {attended, mlp(attended)}));
    }
    const TensorId attended = add("add", {x, attention(norm("norm", x))});
    enter(scope + "/mlp");
    return add("add", {attended, mlp(norm("norm", attended))});
  }

  TensorId embed(TensorId table, TensorId tokens) {
    enter("embed");
    std::vector<TensorId> parts = {b.embedding(path("tokens"), table, tokens)};
    if (shape.learned_positions) {
      TensorId positions =
          b.parameter(path("positions.weight"), {shape.positions, shape.hidden}, {DimName::sequence, DimName::channel});
      if (sequence < shape.positions)
        positions = b.slice(path("positions"), "Slice", positions, {sequence, shape.hidden});
      parts.push_back(positions);
    }
    if (shape.token_types > 0) {
      const TensorId types =
          b.input("token_types", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
      const TensorId type_table =
          b.parameter(path("types.weight"), {shape.token_types, shape.hidden}, {DimName::vocabulary, DimName::channel});
      parts.push_back(b.embedding(path("types"), type_table, types));
    }
    TensorId x = parts.front();
    if (parts.size() > 1) x = b.elementwise(path("add"), "Add", parts, {.flop_per_element = double(parts.size() - 1)});
    return shape.embedding_norm ? norm("norm", x) : x;
  }

  Expected<ModelPtr> build() {
    const TensorId tokens = b.input("tokens", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
    const TensorId table =
        b.parameter("embed/tokens.weight", {shape.vocabulary, shape.hidden}, {DimName::vocabulary, DimName::channel});
    TensorId x = embed(table, tokens);
    for (std::int64_t i = 0; i < shape.layers; ++i) x = layer(i, x);
    enter("head");
    std::vector<TensorId> results;
    if (shape.pooler) {
      const TensorId first = b.slice(path("first"), "Slice", x, {batch, 1, shape.hidden});
      const TensorId operands[] = {linear("pooler", first, shape.hidden, shape.hidden, true)};
      results.push_back(b.elementwise(path("tanh"), "Tanh", operands, {.flop_per_element = 4, .saves_output = true}));
    }
    if (shape.block != TransformerShape::Block::post_norm) x = norm("norm", x);
    const std::vector<std::int64_t> head_shape = {shape.vocabulary, shape.hidden};
    const std::vector<DimName> head_dims = {DimName::vocabulary, DimName::in_channel};
    const TensorId w = shape.tied_head ? b.tied_parameter(path("logits.weight"), table, head_shape, head_dims)
                                       : b.parameter(path("logits.weight"), head_shape, head_dims);
    std::optional<TensorId> bias;
    if (shape.head_bias) bias = b.parameter(path("logits.bias"), {shape.vocabulary}, {DimName::vocabulary});
    const TensorId logits = b.linear(path("logits"), x, w, bias, true, DimName::vocabulary);
    const TensorId labels = b.input("labels", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
    results.insert(results.begin(), b.cross_entropy(path("loss"), logits, labels));
    for (const auto& warning : shape.warnings) b.warn(warning);
    if (!shape.learned_positions && sequence > shape.positions)
      b.warn(
          fmt::format("sequence {} is longer than the {} positions the model was made for", sequence, shape.positions));
    return b.finish(std::move(results));
  }
};

}  // namespace

std::int64_t TransformerShape::default_sequence() const { return std::min<std::int64_t>(2048, positions); }

Expected<ModelPtr> build_transformer(const TransformerShape& shape, const std::string& name, const std::string& source,
                                     std::int64_t batch, std::int64_t sequence) {
  if (batch < 1 || sequence < 1)
    return usage_error(fmt::format("batch {} and sequence {} must be at least 1", batch, sequence), source);
  if (shape.learned_positions && sequence > shape.positions)
    return usage_error(
        fmt::format("sequence {} is longer than the model's {} learned positions", sequence, shape.positions), source);
  const double widest =
      std::max({double(shape.hidden), double(shape.intermediate), double(shape.vocabulary),
                double(shape.heads) * double(shape.head_channels), double(shape.heads) * double(sequence)});
  // Sums over all layers must stay far inside 64 bits.
  if (double(shape.layers) * double(batch) * double(sequence) * widest > std::ldexp(1.0, 52))
    return usage_error(fmt::format("batch {} with sequence {} is too large for this model", batch, sequence), source);
  return Builder{shape, ModelBuilder(name, source, batch, sequence), batch, sequence, {}}.build();
}

}  // namespace turnpoint
