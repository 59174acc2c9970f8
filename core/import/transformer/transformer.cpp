// SPDX-License-Identifier: Apache-2.0
#include "core/import/transformer/transformer.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/import/transformer/layers.h"

namespace turnpoint {

namespace {

const std::vector<DimName> kTokenDims = {DimName::batch, DimName::sequence};

/// The whole network: embeddings, one or two stacks, the loss.
class Network {
 public:
  Network(const TransformerShape& shape, const std::string& name, const std::string& source, std::int64_t batch,
          std::int64_t sequence)
      : shape_(shape), b_(name, source, batch, sequence), batch_(batch), sequence_(sequence) {}

  Expected<ModelPtr> build() {
    table_ = b_.parameter("embed/tokens.weight", {shape_.vocabulary, table_channels()},
                          {DimName::vocabulary, DimName::channel});
    TransformerShape encoder_shape = shape_;
    const bool two_stacks = shape_.encoder_layers > 0;
    TransformerLayers layers(b_, shape_, two_stacks ? "decoder/" : "", batch_, sequence_);
    if (two_stacks) {
      encoder_shape.layers = shape_.encoder_layers;
      if (shape_.encoder_heads) encoder_shape.heads = encoder_shape.kv_heads = shape_.encoder_heads;
      if (shape_.encoder_intermediate) encoder_shape.intermediate = shape_.encoder_intermediate;
      encoder_shape.head_channels = shape_.encoder_heads ? shape_.hidden / shape_.encoder_heads : shape_.head_channels;
      TransformerLayers encoder(b_, encoder_shape, "encoder/", batch_, sequence_);
      const TensorId memory = stack(encoder, encoder_shape, "tokens");
      keep_sequence_whole(memory);
      layers.attend_to(memory);
    }
    const TensorId x = stack(layers, shape_, two_stacks ? "decoder_tokens" : "tokens");
    layers.enter("head");
    std::vector<TensorId> results;
    if (shape_.pooler) {
      const TensorId first = b_.slice(layers.path("first"), "Slice", x, {batch_, 1, shape_.hidden});
      const TensorId operands[] = {layers.linear("pooler", first, shape_.hidden, shape_.hidden, true)};
      results.push_back(
          b_.elementwise(layers.path("tanh"), "Tanh", operands, {.flop_per_element = 4, .saves_output = true}));
    }
    results.insert(results.begin(), loss(layers, x));
    for (const auto& warning : shape_.warnings) b_.warn(warning);
    if (!shape_.learned_positions && shape_.position_buckets == 0 && sequence_ > shape_.positions)
      b_.warn(fmt::format("sequence {} is longer than the {} positions the model was made for", sequence_,
                          shape_.positions));
    return b_.finish(std::move(results));
  }

 private:
  std::int64_t table_channels() const { return shape_.embedding_channels ? shape_.embedding_channels : shape_.hidden; }
  bool projects_embeddings() const { return shape_.embedding_projection || table_channels() != shape_.hidden; }

  void keep_sequence_whole(TensorId x) {
    if (b_.error()) return;
    for (auto& loop : b_.model().operators[b_.tensor(x).producer].dims)
      if (loop.name == DimName::sequence) loop.splittable = false;
  }

  TensorId stack(TransformerLayers& layers, const TransformerShape& shape, const std::string& tokens_name) {
    TensorId x = embed(layers, tokens_name);
    for (std::int64_t i = 0; i < shape.layers; ++i) x = layers.layer(i, x);
    layers.enter("head");
    return shape.block == TransformerShape::Block::post_norm ? x : layers.norm("norm", x);
  }

  TensorId embed(TransformerLayers& layers, const std::string& tokens_name) {
    const TensorId tokens = b_.input(tokens_name, {batch_, sequence_}, kTokenDims, ElementType::i64);
    layers.enter("embed");
    std::vector<TensorId> parts = {b_.embedding(layers.path("tokens"), table_, tokens)};
    const auto width = table_channels();
    // OPT adds positions after its projection, ALBERT before; both are so small that one order serves.
    const bool project_first = projects_embeddings() && shape_.own_output_projection;
    if (project_first) parts.front() = project(layers, parts.front());
    const auto channels = project_first ? shape_.hidden : width;
    if (shape_.learned_positions) {
      const std::int64_t rows = shape_.positions + shape_.spare_positions;
      TensorId positions =
          b_.parameter(layers.path("positions.weight"), {rows, channels}, {DimName::sequence, DimName::channel});
      if (sequence_ < rows) positions = b_.slice(layers.path("positions"), "Slice", positions, {sequence_, channels});
      parts.push_back(positions);
    }
    if (shape_.token_types > 0) {
      const TensorId types = b_.input("token_types", {batch_, sequence_}, kTokenDims, ElementType::i64);
      const TensorId type_table = b_.parameter(layers.path("types.weight"), {shape_.token_types, channels},
                                               {DimName::vocabulary, DimName::channel});
      parts.push_back(b_.embedding(layers.path("types"), type_table, types));
    }
    TensorId x = parts.front();
    if (parts.size() > 1)
      x = b_.elementwise(layers.path("add"), "Add", parts, {.flop_per_element = double(parts.size() - 1)});
    if (shape_.embedding_norm) x = layers.norm("norm", x, channels);
    return projects_embeddings() && !project_first ? project(layers, x) : x;
  }

  TensorId project(TransformerLayers& layers, TensorId x) {
    const std::int64_t width = table_channels();
    projection_ = b_.parameter(layers.path("projection.weight"), {width, shape_.hidden},
                               {DimName::in_channel, DimName::out_channel});
    std::optional<TensorId> bias;
    if (shape_.embedding_projection)
      bias = b_.parameter(layers.path("projection.bias"), {shape_.hidden}, {DimName::out_channel});
    return b_.linear(layers.path("projection"), x, projection_, bias, false, DimName::channel);
  }

  TensorId loss(TransformerLayers& layers, TensorId x) {
    const std::int64_t width = table_channels();
    if (projects_embeddings()) {
      const TensorId w = shape_.own_output_projection
                             ? b_.parameter(layers.path("projection.weight"), {width, shape_.hidden},
                                            {DimName::out_channel, DimName::in_channel})
                             : b_.tied_parameter(layers.path("projection.weight"), projection_, {width, shape_.hidden},
                                                 {DimName::out_channel, DimName::in_channel});
      x = b_.linear(layers.path("projection"), x, w, {}, true, DimName::channel);
    }
    if (shape_.labels > 0) return classify(layers, x, width);
    const std::vector<std::int64_t> sizes = {shape_.vocabulary, width};
    const std::vector<DimName> dims = {DimName::vocabulary, DimName::in_channel};
    const TensorId w = shape_.tied_head ? b_.tied_parameter(layers.path("logits.weight"), table_, sizes, dims)
                                        : b_.parameter(layers.path("logits.weight"), sizes, dims);
    std::optional<TensorId> bias;
    if (shape_.head_bias) bias = b_.parameter(layers.path("logits.bias"), {shape_.vocabulary}, {DimName::vocabulary});
    const TensorId logits = b_.linear(layers.path("logits"), x, w, bias, true, DimName::vocabulary);
    const TensorId labels = b_.input("labels", {batch_, sequence_}, kTokenDims, ElementType::i64);
    return b_.cross_entropy(layers.path("loss"), logits, labels);
  }

  TensorId classify(TransformerLayers& layers, TensorId x, std::int64_t width) {
    const TensorId last = b_.slice(layers.path("last"), "Slice", x, {batch_, 1, width});
    const TensorId w =
        b_.parameter(layers.path("score.weight"), {shape_.labels, width}, {DimName::vocabulary, DimName::in_channel});
    const TensorId scores = b_.linear(layers.path("score"), last, w, {}, true, DimName::vocabulary);
    const TensorId labels = b_.input("labels", {batch_, 1}, kTokenDims, ElementType::i64);
    return b_.cross_entropy(layers.path("loss"), scores, labels);
  }

  const TransformerShape& shape_;
  ModelBuilder b_;
  std::int64_t batch_, sequence_;
  TensorId table_, projection_;
};

}  // namespace

std::int64_t TransformerShape::default_sequence() const { return std::min<std::int64_t>(2048, positions); }

bool TransformerShape::fits(std::int64_t batch, std::int64_t sequence) const {
  const double channels = double(head_channels + latent.rotary_channels + latent.value_channels);
  const double experts = double(moe.experts + moe.per_token) * double(hidden + moe.intermediate);
  const double widest = std::max({double(hidden), double(intermediate), double(vocabulary), double(heads) * channels,
                                  double(heads) * double(sequence), double(moe.shared_intermediate), experts});
  // Sums over all layers must stay far inside 64 bits.
  return double(layers + encoder_layers) * double(batch) * double(sequence) * widest <= std::ldexp(1.0, 52);
}

Expected<ModelPtr> build_transformer(const TransformerShape& shape, const std::string& name, const std::string& source,
                                     std::int64_t batch, std::int64_t sequence) {
  if (batch < 1 || sequence < 1)
    return usage_error(fmt::format("batch {} and sequence {} must be at least 1", batch, sequence), source);
  if (shape.learned_positions && sequence > shape.positions)
    return usage_error(
        fmt::format("sequence {} is longer than the model's {} learned positions", sequence, shape.positions), source);
  if (!shape.fits(batch, sequence))
    return usage_error(fmt::format("batch {} with sequence {} is too large for this model", batch, sequence), source);
  return Network(shape, name, source, batch, sequence).build();
}

}  // namespace turnpoint
