// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <cmath>

#include "core/import/builtin/networks.h"
#include "core/import/transformer/transformer.h"
#include "core/model/builder.h"

namespace turnpoint {

namespace {

/// Embedding, a stack of LSTM layers of equal width, and a projection to the vocabulary.
/// Every layer is one recurrent operator over the whole sequence. Its hidden units may be split: the exchange of the
/// state that this takes at each step is what the edge to the next layer, which needs all units, is charged for (the
/// same bytes, gathered once for both).
Expected<ModelPtr> lstm_language_model(const NetworkParameters& p, std::int64_t vocabulary, bool two_biases,
                                       bool head_bias) {
  const std::int64_t h = p.hidden, n = p.batch, s = p.sequence;
  if (double(p.layers) * double(n) * double(s) * double(std::max(4 * h, vocabulary)) > std::ldexp(1.0, 52))
    return usage_error(fmt::format("batch {} with sequence {} is too large for this model", n, s), p.source);
  ModelBuilder b(p.name, p.source, n, s);
  b.set_scope("embed");
  const TensorId tokens = b.input("tokens", {n, s}, {DimName::batch, DimName::sequence}, ElementType::i64);
  const TensorId table = b.parameter("embed/tokens.weight", {vocabulary, h}, {DimName::vocabulary, DimName::channel});
  TensorId x = b.embedding("embed/tokens", table, tokens);
  for (std::int64_t i = 0; i < p.layers; ++i) {
    const std::string scope = fmt::format("layer{}", i);
    b.set_scope(scope);
    const TensorId w = b.parameter(scope + "/lstm.input_weight", {1, 4 * h, h});
    const TensorId r = b.parameter(scope + "/lstm.state_weight", {1, 4 * h, h});
    const TensorId bias = b.parameter(scope + "/lstm.bias", {1, (two_biases ? 8 : 4) * h});
    x = b.recurrent(scope + "/lstm", "LSTM", x, w, r, bias, 4, 1, h, true, true);
  }
  b.set_scope("head");
  const TensorId w = b.parameter("head/logits.weight", {h, vocabulary}, {DimName::in_channel, DimName::vocabulary});
  std::optional<TensorId> bias;
  if (head_bias) bias = b.parameter("head/logits.bias", {vocabulary}, {DimName::vocabulary});
  const TensorId logits = b.linear("head/logits", x, w, bias, false, DimName::vocabulary);
  const TensorId labels = b.input("labels", {n, s}, {DimName::batch, DimName::sequence}, ElementType::i64);
  return b.finish({b.cross_entropy("head/loss", logits, labels)});
}

Expected<ModelPtr> transformer(const NetworkParameters& p, TransformerShape shape, std::int64_t heads,
                               std::int64_t default_width) {
  shape.layers = p.layers;
  shape.hidden = p.hidden;
  shape.heads = heads;
  if (shape.kv_heads == 0) shape.kv_heads = heads;
  shape.head_channels = heads > 0 ? p.hidden / heads : 0;
  shape.intermediate = p.width ? p.width : default_width;
  if (shape.head_channels < 1 || shape.head_channels * heads != p.hidden)
    return usage_error(fmt::format("hidden {} is not a multiple of its {} heads", p.hidden, heads), p.source);
  return build_transformer(shape, p.name, p.source, p.batch, p.sequence);
}

/// GPT-2's layout: learned positions, norms before, biases everywhere, tied output.
TransformerShape gpt2_layout(std::int64_t vocabulary, std::int64_t positions) {
  TransformerShape shape;
  shape.vocabulary = vocabulary;
  shape.positions = positions;
  shape.learned_positions = shape.qkv_bias = shape.output_bias = shape.mlp_bias = shape.tied_head = true;
  return shape;
}

TransformerShape llama_layout() {
  TransformerShape shape;
  shape.vocabulary = 32000;
  shape.positions = 4096;
  shape.norm = TransformerShape::Norm::rms;
  shape.mlp = TransformerShape::Mlp::gated;
  shape.activation = "silu";
  return shape;
}

Expected<std::int64_t> heads_of(const NetworkParameters& p, std::int64_t head_channels) {
  if (p.hidden % head_channels != 0)
    return usage_error(fmt::format("hidden {} is not a multiple of {} channels a head", p.hidden, head_channels),
                       p.source);
  return p.hidden / head_channels;
}

}  // namespace

Expected<ModelPtr> build_rnn(const NetworkParameters& p) { return lstm_language_model(p, 51200, false, false); }
Expected<ModelPtr> build_lstm_lm(const NetworkParameters& p) { return lstm_language_model(p, 10000, true, true); }

Expected<ModelPtr> build_study_transformer(const NetworkParameters& p) {
  // 32 heads whatever the width, so that heads split over up to 32 devices.
  TransformerShape shape = gpt2_layout(16384, std::max<std::int64_t>(512, p.sequence));
  shape.tied_head = false;
  return transformer(p, shape, 32, 4 * p.hidden);
}

Expected<ModelPtr> build_gpt2(const NetworkParameters& p) {
  const auto heads = heads_of(p, 64);
  if (!heads) return heads.error();
  return transformer(p, gpt2_layout(50257, 1024), *heads, 4 * p.hidden);
}

Expected<ModelPtr> build_bert_large(const NetworkParameters& p) {
  const auto heads = heads_of(p, 64);
  if (!heads) return heads.error();
  TransformerShape shape = gpt2_layout(30522, 512);
  shape.block = TransformerShape::Block::post_norm;
  shape.token_types = 2;
  shape.embedding_norm = shape.pooler = true;
  return transformer(p, shape, *heads, 4 * p.hidden);
}

Expected<ModelPtr> build_llama2(const NetworkParameters& p) {
  const auto heads = heads_of(p, 128);
  if (!heads) return heads.error();
  // Two thirds of four times the width, rounded up to 256.
  return transformer(p, llama_layout(), *heads, (8 * p.hidden / 3 + 255) / 256 * 256);
}

Expected<ModelPtr> build_llama2_70b(const NetworkParameters& p) {
  TransformerShape shape = llama_layout();
  shape.kv_heads = 8;
  return transformer(p, shape, 64, 28672);
}

}  // namespace turnpoint
