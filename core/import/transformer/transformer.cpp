// SPDX-License-Identifier: Apache-2.0
#include "core/import/transformer/transformer.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/import/source/model_source.h"
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
    if (shape_.image.channels > 0 || (shape_.audio.bins > 0 && shape_.encoder_layers == 0)) return build_tower();
    table_ = b_.parameter("embed/tokens.weight", {shape_.vocabulary, table_channels()},
                          {DimName::vocabulary, DimName::channel});
    TransformerShape encoder_shape = shape_;
    const bool two_stacks = shape_.encoder_layers > 0;
    TransformerShape decoder_shape = shape_;
    decoder_shape.global_token = shape_.global_token && !two_stacks;
    TransformerLayers layers(b_, decoder_shape, two_stacks ? "decoder/" : "", batch_, sequence_);
    if (two_stacks) {
      encoder_shape.layers = shape_.encoder_layers;
      encoder_shape.causal = false;
      if (shape_.encoder_heads) encoder_shape.heads = encoder_shape.kv_heads = shape_.encoder_heads;
      if (shape_.encoder_intermediate) encoder_shape.intermediate = shape_.encoder_intermediate;
      encoder_shape.head_channels = shape_.encoder_heads ? shape_.hidden / shape_.encoder_heads : shape_.head_channels;
      const bool hears = shape_.audio.bins > 0;
      TransformerLayers encoder(b_, encoder_shape, "encoder/", batch_, hears ? shape_.audio.positions : sequence_);
      const TensorId decoder_table = table_;
      if (shape_.own_tables)
        table_ = b_.parameter("encoder/embed/tokens.weight", {shape_.vocabulary, table_channels()},
                              {DimName::vocabulary, DimName::channel});
      const TensorId source = hears ? listen(encoder) : embed(encoder, "tokens", shape_.encoder_positions);
      table_ = decoder_table;
      const TensorId memory = stack(encoder, encoder_shape, source);
      keep_sequence_whole(memory);
      layers.attend_to(memory);
    } else if (shape_.foreign_memory) {
      layers.attend_to(b_.input("encoder_states", {batch_, sequence_, shape_.hidden},
                                {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32));
    }
    const TensorId x = stack(layers, shape_, embed(layers, two_stacks ? "decoder_tokens" : "tokens"));
    layers.enter("head");
    std::vector<TensorId> results;
    if (shape_.pooler && shape_.labels > 0 && !shape_.label_each) {
      results.push_back(classify(layers, pool(layers, x), shape_.hidden));
    } else {
      if (shape_.pooler) results.push_back(pool(layers, x));
      results.insert(results.begin(), loss(layers, x));
    }
    for (const auto& warning : shape_.warnings) b_.warn(warning);
    if (!shape_.learned_positions && shape_.position_buckets == 0 && shape_.relative.rows == 0 &&
        sequence_ > shape_.positions)
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

  TensorId stack(TransformerLayers& layers, const TransformerShape& shape, TensorId x) {
    for (std::int64_t i = 0; i < shape.layers; ++i) x = layers.layer(i, x);
    layers.enter("head");
    return shape.block == TransformerShape::Block::post_norm || !shape.last_norm ? x : layers.norm("norm", x);
  }

  /// BERT's dense layer with tanh on the first position.
  TensorId pool(TransformerLayers& layers, TensorId x) {
    const TensorId first = b_.slice(layers.path("first"), "Slice", x, {batch_, 1, shape_.hidden});
    const TensorId operands[] = {layers.linear("pooler", first, shape_.hidden, shape_.hidden, true)};
    return b_.elementwise(layers.path("tanh"), "Tanh", operands, {.flop_per_element = 4, .saves_output = true});
  }

  TensorId convolve(TransformerLayers& layers, const std::string& leaf, TensorId x, std::int64_t in,
                    const ConvolutionShape& shape, bool with_bias = true) {
    std::vector<std::int64_t> sizes = {shape_.hidden, in};
    std::vector<DimName> names = {DimName::out_channel, DimName::in_channel};
    sizes.insert(sizes.end(), shape.kernel.begin(), shape.kernel.end());
    names.resize(sizes.size(), DimName::window);
    const TensorId w = b_.parameter(layers.path(leaf + ".weight"), sizes, names);
    std::optional<TensorId> bias;
    if (with_bias) bias = b_.parameter(layers.path(leaf + ".bias"), {shape_.hidden}, {DimName::out_channel});
    return b_.convolution(layers.path(leaf), x, w, bias, shape);
  }

  /// [batch, channel, positions...] as [batch, sequence, channel].
  TensorId as_sequence(TransformerLayers& layers, TensorId x, std::int64_t positions) {
    const TensorId flat = b_.reshape(layers.path("flat"), x, {batch_, shape_.hidden, positions},
                                     {DimName::batch, DimName::channel, DimName::sequence});
    return b_.transpose(layers.path("turn"), flat, {0, 2, 1});
  }

  /// ViT and its kind: a product per patch, tokens before them, learned positions.
  TensorId see(TransformerLayers& layers) {
    const PatchInput& image = shape_.image;
    layers.enter("embed");
    const TensorId pixels =
        b_.input("pixels", {batch_, image.channels, image.height, image.width},
                 {DimName::batch, DimName::channel, DimName::height, DimName::width}, ElementType::f32);
    ConvolutionShape patch;
    patch.kernel = {image.patch_height, image.patch_width};
    patch.strides = {image.rows_apart(), image.columns_apart()};
    patch.dilations = {1, 1};
    patch.pads_begin = patch.pads_end = {0, 0};
    TensorId x = as_sequence(layers, convolve(layers, "patches", pixels, image.channels, patch, image.bias),
                             image.patches());
    const std::vector<DimName> dims = {DimName::batch, DimName::sequence, DimName::channel};
    const auto lead = [&](const std::string& leaf, std::int64_t tokens) {
      const TensorId token = b_.parameter(layers.path(leaf + ".weight"), {1, tokens, shape_.hidden}, dims);
      const TensorId both[] = {b_.expand(layers.path(leaf), token, {batch_, tokens, shape_.hidden}, dims), x};
      x = b_.concat(layers.path(leaf == "class" ? "join" : leaf + "_join"), both, 1);
    };
    const std::int64_t placed = image.tokens - image.registers;
    if (placed > 0) lead("class", placed);
    if (image.positions) {
      const TensorId positions = b_.parameter(layers.path("positions.weight"),
                                              {image.patches() + placed, shape_.hidden},
                                              {DimName::sequence, DimName::channel});
      const TensorId parts[] = {x, positions};
      x = b_.elementwise(layers.path("add"), "Add", parts, {.flop_per_element = 1});
    }
    if (image.registers > 0) lead("registers", image.registers);
    return shape_.embedding_norm ? layers.norm("norm", x) : x;
  }

  /// A tower of pictures or sound alone: as far as its classes, its pooled result or its states.
  Expected<ModelPtr> build_tower() {
    const bool sees = shape_.image.channels > 0;
    TransformerLayers layers(b_, shape_, "", batch_, sequence_);
    const TensorId x = stack(layers, shape_, sees ? see(layers) : listen(layers));
    layers.enter("head");
    TensorId result = x;
    if (shape_.attention_pool) result = pool_by_attention(layers, x);
    if (shape_.pooler)
      result = pool(layers, x);
    else if (shape_.labels > 0)
      result = classify(layers, shape_.label_mean ? first_and_mean(layers, x) : x,
                        shape_.label_mean ? 2 * shape_.hidden : shape_.hidden);
    for (const auto& warning : shape_.warnings) b_.warn(warning);
    return b_.finish({result});
  }

  TensorId first_and_mean(TransformerLayers& layers, TensorId x) {
    const TensorId first = b_.slice(layers.path("first"), "Slice", x, {batch_, 1, shape_.hidden});
    const TensorId both[] = {first, b_.reduction(layers.path("mean"), "Mean", x, {1}, true)};
    return b_.concat(layers.path("both"), both, 2);
  }

  /// SigLIP: one learned query, attention of the usual heads, then x + MLP(norm(x)).
  TensorId pool_by_attention(TransformerLayers& layers, TensorId x) {
    const std::int64_t hidden = shape_.hidden, channels = hidden / shape_.heads, length = sequence_;
    const std::vector<DimName> dims = {DimName::batch, DimName::sequence, DimName::channel};
    const TensorId probe = b_.parameter(layers.path("probe.weight"), {1, 1, hidden}, dims);
    const auto heads_of = [&](const std::string& leaf, TensorId of, std::int64_t positions) {
      const TensorId y = layers.linear(leaf, of, hidden, hidden, true);
      const TensorId split = b_.reshape(layers.path(leaf + "_heads"), y, {batch_, positions, shape_.heads, channels},
                                        {DimName::batch, DimName::sequence, DimName::head, DimName::head_channel});
      return b_.transpose(layers.path(leaf + "_turn"), split, {0, 2, 1, 3});
    };
    const TensorId q = heads_of("pool_q", b_.expand(layers.path("probe"), probe, {batch_, 1, hidden}, dims), 1);
    const TensorId scores =
        b_.matmul(layers.path("pool_scores"), q, heads_of("pool_k", x, length), false, true);
    const TensorId context = b_.matmul(layers.path("pool_context"), b_.softmax(layers.path("pool_softmax"), scores, 3),
                                       heads_of("pool_v", x, length));
    const TensorId joined =
        b_.reshape(layers.path("pool_join"), b_.transpose(layers.path("pool_back"), context, {0, 2, 1, 3}),
                   {batch_, 1, hidden}, dims);
    const TensorId pooled = layers.linear("pool_out", joined, hidden, hidden, true);
    const TensorId up[] = {layers.linear("pool_up", layers.norm("pool_norm", pooled), hidden, shape_.intermediate, true)};
    const TensorId act =
        b_.elementwise(layers.path("pool_act"), shape_.activation, up, {.flop_per_element = 8, .saves_input = {true}});
    const TensorId parts[] = {pooled, layers.linear("pool_down", act, shape_.intermediate, hidden, true)};
    return b_.elementwise(layers.path("pool_add"), "Add", parts, {.flop_per_element = 1});
  }

  /// Whisper: two convolutions over the frames, then positions that are not trained.
  TensorId listen(TransformerLayers& layers) {
    const AudioInput& audio = shape_.audio;
    const TensorId spectrogram = b_.input("spectrogram", {batch_, audio.bins, 2 * audio.positions},
                                          {DimName::batch, DimName::channel, DimName::sequence}, ElementType::f32);
    layers.enter("embed");
    ConvolutionShape three;
    three.kernel = {3};
    three.strides = three.dilations = three.pads_begin = three.pads_end = {1};
    const ElementwiseTraits gelu{.flop_per_element = 8, .saves_input = {true}};
    const TensorId once[] = {convolve(layers, "frames", spectrogram, audio.bins, three)};
    const TensorId heard = b_.elementwise(layers.path("frames_act"), "gelu", once, gelu);
    three.strides = {2};
    const TensorId twice[] = {convolve(layers, "halves", heard, shape_.hidden, three)};
    const TensorId halved = b_.elementwise(layers.path("halves_act"), "gelu", twice, gelu);
    const TensorId positions = b_.buffer(layers.path("positions.weight"), {audio.positions, shape_.hidden});
    const TensorId parts[] = {as_sequence(layers, halved, audio.positions), positions};
    return b_.elementwise(layers.path("add"), "Add", parts, {.flop_per_element = 1});
  }

  TensorId embed(TransformerLayers& layers, const std::string& tokens_name, std::int64_t own_positions = 0) {
    const TensorId tokens = b_.input(tokens_name, {batch_, sequence_}, kTokenDims, ElementType::i64);
    layers.enter("embed");
    std::vector<TensorId> parts = {b_.embedding(layers.path("tokens"), table_, tokens)};
    const auto width = table_channels();
    // OPT adds positions after its projection, ALBERT before; both are so small that one order serves.
    const bool project_first = projects_embeddings() && shape_.own_output_projection;
    if (project_first) parts.front() = project(layers, parts.front());
    const auto channels = project_first ? shape_.hidden : width;
    if (shape_.learned_positions) {
      const std::int64_t rows = (own_positions ? own_positions : shape_.positions) + shape_.spare_positions;
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
    if (shape_.embedding_dropout) x = layers.dropout(x);
    return projects_embeddings() && !project_first ? project(layers, x) : x;
  }

  /// Of what the words are predicted from.
  std::int64_t transform_channels() const {
    return shape_.transform_channels ? shape_.transform_channels : shape_.hidden;
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

  /// BERT's dense layer, activation and norm before the words.
  TensorId transform(TransformerLayers& layers, TensorId x) {
    const std::int64_t width = transform_channels();
    const TensorId dense[] = {layers.linear("transform", x, shape_.hidden, width, shape_.transform_bias)};
    const TensorId y =
        b_.elementwise(layers.path("transform_act"), "gelu", dense, {.flop_per_element = 8, .saves_input = {true}});
    return layers.norm("transform_norm", y, width);
  }

  TensorId loss(TransformerLayers& layers, TensorId x) {
    const std::int64_t width = shape_.transform ? transform_channels() : table_channels();
    if (shape_.transform) {
      x = transform(layers, x);
    } else if (projects_embeddings()) {
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
    const char* which = shape_.image.channels > 0 ? "first" : "last";
    const std::int64_t found = b_.error() ? 1 : b_.tensor(x).shape[1];
    const TensorId one = found == 1 || shape_.label_each ? x
                                                         : b_.slice(layers.path(which), "Slice", x, {batch_, 1, width});
    const TensorId w =
        b_.parameter(layers.path("score.weight"), {shape_.labels, width}, {DimName::vocabulary, DimName::in_channel});
    std::optional<TensorId> bias;
    if (shape_.label_bias) bias = b_.parameter(layers.path("score.bias"), {shape_.labels}, {DimName::vocabulary});
    const TensorId scores = b_.linear(layers.path("score"), one, w, bias, true, DimName::vocabulary);
    const TensorId labels =
        b_.input("labels", {batch_, shape_.label_each ? found : 1}, kTokenDims, ElementType::i64);
    return b_.cross_entropy(layers.path("loss"), scores, labels);
  }

  const TransformerShape& shape_;
  ModelBuilder b_;
  std::int64_t batch_, sequence_;
  TensorId table_, projection_;
};

}  // namespace

std::int64_t TransformerShape::default_sequence() const {
  return image.channels > 0 || vocabulary == 0 ? positions : std::min(kLongestDefaultSequence, positions);
}

std::string TransformerShape::default_sequence_reason() const {
  if (image.channels > 0 || vocabulary == 0) return {};
  if (!positions_named) return "a usual length: the file names no maximum";
  if (positions <= kLongestDefaultSequence) return "the model's own maximum";
  return fmt::format("the most that is taken unasked; the model's own maximum is {}", positions);
}

bool TransformerShape::fits(std::int64_t batch, std::int64_t sequence) const {
  const double channels = double(head_channels + value_channels + latent.rotary_channels + latent.value_channels);
  const double experts = double(moe.experts + moe.per_token) * double(hidden + moe.intermediate);
  const double widest =
      std::max({double(hidden), double(intermediate), double(vocabulary), double(heads) * channels,
                double(heads) * double(std::max(sequence, audio.positions)), double(moe.shared_intermediate), experts,
                double(audio.bins), double(heads) * double(relative.rows), double(indexer.heads) * double(sequence),
                double(states.inner) * double(states.state),
                double(delta.value_heads) * double(delta.key_channels + delta.value_channels)});
  // Sums over all layers must stay far inside 64 bits.
  const double longest =
      std::max({double(sequence), 2.0 * double(audio.positions),
                double(image.channels) * double(image.height) * double(image.width) / double(hidden)});
  return double(layers + encoder_layers) * double(batch) * longest * widest <= std::ldexp(1.0, 52);
}

Expected<ModelPtr> build_transformer(const TransformerShape& shape, const std::string& name, const std::string& source,
                                     std::int64_t batch, std::int64_t sequence) {
  if (shape.image.channels > 0) sequence = shape.image.patches() + shape.image.tokens;
  if (shape.audio.bins > 0 && shape.encoder_layers == 0) sequence = shape.audio.positions;
  if (batch < 1 || sequence < 1)
    return usage_error(fmt::format("batch {} and sequence {} must be at least 1", batch, sequence), source);
  const std::int64_t positions =
      shape.encoder_positions ? std::min(shape.positions, shape.encoder_positions) : shape.positions;
  if (shape.learned_positions && sequence > positions)
    return usage_error(fmt::format("sequence {} is longer than the model's {} learned positions", sequence, positions),
                       source);
  if (!shape.fits(batch, sequence))
    return usage_error(fmt::format("batch {} with sequence {} is too large for this model", batch, sequence), source);
  TransformerShape own = shape;
  if (own.relative.fixed) own.relative.rows = 2 * sequence;
  return Network(own, name, source, batch, sequence).build();
}

}  // namespace turnpoint
