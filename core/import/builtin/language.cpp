// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>

#include "core/import/builtin/networks.h"
#include "core/import/transformer/transformer.h"
#include "core/model/builder.h"

namespace turnpoint {

namespace {

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
  shape.rotary = true;
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
  shape.causal = false;
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

Expected<ModelPtr> build_mixtral(const NetworkParameters& p) {
  const auto heads = heads_of(p, 128);
  if (!heads) return heads.error();
  if (*heads % 8 != 0)
    return usage_error(fmt::format("hidden {} is not a multiple of 8 key-value heads of 128 channels", p.hidden),
                       p.source);
  TransformerShape shape = llama_layout();
  shape.positions = 32768;
  shape.kv_heads = 8;
  shape.moe.experts = 8;
  shape.moe.per_token = 2;
  shape.moe.intermediate = p.width ? p.width : 14336;
  return transformer(p, shape, *heads, 14336);
}

Expected<ModelPtr> build_trn(const NetworkParameters& p) {
  // An encoder and a decoder of `layers` each in the form of the study's program: no product after the heads are
  // joined, 32000 words shared by both sides and the output, fixed positions. Only so do its counts come out.
  TransformerShape shape;
  shape.vocabulary = 32000;
  shape.positions = std::max<std::int64_t>(1024, p.sequence);
  shape.block = TransformerShape::Block::post_norm;
  shape.activation = "relu";
  shape.qkv_bias = shape.mlp_bias = shape.tied_head = true;
  shape.output_projection = false;
  shape.encoder_layers = p.layers;
  return transformer(p, shape, 8, 5 * p.hidden / 2);
}

Expected<ModelPtr> build_transformer_big(const NetworkParameters& p) {
  const auto heads = heads_of(p, 64);
  if (!heads) return heads.error();
  // Vaswani et al. 2017 (arXiv 1706.03762), the big one, as MLPerf has it: norms before each branch and after each
  // stack, attention without biases, positions as sines, one table for both languages and the output.
  TransformerShape shape;
  shape.vocabulary = 33708;
  shape.positions = std::max<std::int64_t>(256, p.sequence);
  shape.activation = "relu";
  shape.mlp_bias = shape.tied_head = true;
  shape.encoder_layers = p.layers;
  return transformer(p, shape, *heads, 4 * p.hidden);
}

}  // namespace turnpoint
