// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts.
#include <fmt/format.h>

#include "core/import/huggingface/family_functions.h"

namespace turnpoint::huggingface {

TransformerShape mixtral(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 8, 14336, 32000, 131072));
  c.experts(s, {"num_local_experts"}, 8, {"num_experts_per_tok"}, 2);
  s.moe.intermediate = s.intermediate;
  c.sliding_window(s, true);
  return s;
}

namespace {

/// Qwen's rule for which layers are mixtures.
void qwen_experts(ConfigReader& c, TransformerShape& s, std::int64_t experts, std::int64_t chosen, std::int64_t width) {
  c.experts(s, {"num_experts", "num_local_experts"}, experts, {"num_experts_per_tok"}, chosen);
  s.moe.intermediate = c.width({"moe_intermediate_size"}, width);
  const std::int64_t step = c.layers({"decoder_sparse_step"}, 1);
  const auto dense = c.layer_list("mlp_only_layers", s.layers);
  if (!c.good()) return;
  s.moe.dense.resize(static_cast<std::size_t>(s.layers));
  for (std::int64_t i = 0; i < s.layers; ++i) s.moe.dense[static_cast<std::size_t>(i)] = (i + 1) % step != 0;
  for (const auto i : dense) s.moe.dense[static_cast<std::size_t>(i)] = true;
  c.sliding_window(s, c.flag("use_sliding_window", false));
}

/// Shared experts beside the chosen ones, the first layers dense.
void deepseek_experts(ConfigReader& c, TransformerShape& s, const TransformerShape& defaults, std::int64_t width,
                      std::int64_t dense) {
  if (c.is_null("n_routed_experts")) return;  // an ordinary MLP everywhere
  c.experts(s, {"n_routed_experts", "num_local_experts", "num_experts"}, defaults.moe.experts, {"num_experts_per_tok"},
            defaults.moe.per_token);
  s.moe.intermediate = c.width({"moe_intermediate_size"}, width);
  const std::int64_t shared =
      c.is_null("n_shared_experts") ? 0 : c.count("n_shared_experts", 1024, defaults.moe.shared_intermediate);
  s.moe.shared_intermediate = shared * s.moe.intermediate;
  const std::int64_t first = c.count("first_k_dense_replace", ConfigReader::kMaximumLayers, dense);
  const std::int64_t every = c.layers({"moe_layer_freq"}, 1);
  const std::int64_t groups = c.integer({"n_group"}, ConfigReader::kMaximumExperts, 1);
  if (!c.good()) return;
  if (s.moe.experts % groups != 0)
    c.fail("n_group", fmt::format("{} does not divide the {} experts", groups, s.moe.experts));
  s.moe.dense.resize(static_cast<std::size_t>(s.layers));
  for (std::int64_t i = 0; i < s.layers; ++i) s.moe.dense[static_cast<std::size_t>(i)] = i < first || i % every != 0;
}

TransformerShape latent_deepseek(ConfigReader& c, const TransformerShape& defaults, std::int64_t width,
                                 std::int64_t dense) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, defaults.hidden);
  s.layers = c.layers({"num_hidden_layers"}, defaults.layers);
  s.heads = s.kv_heads = c.integer({"num_attention_heads"}, ConfigReader::kMaximumHeads, defaults.heads);
  s.intermediate = c.width({"intermediate_size"}, defaults.intermediate);
  c.vocabulary(s, defaults.vocabulary, defaults.positions);
  s.activation = c.text({"hidden_act"}, "silu");
  s.norm = TransformerShape::Norm::rms;
  s.mlp = TransformerShape::Mlp::gated;
  s.tied_head = c.flag("tie_word_embeddings", false);
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.head_channels = c.width({"qk_nope_head_dim"}, 128);
  s.latent.rotary_channels = c.count("qk_rope_head_dim", ConfigReader::kMaximumWidth, 64);
  s.latent.value_channels = c.width({"v_head_dim"}, 128);
  s.latent.key_value_rank = c.width({"kv_lora_rank"}, 512);
  s.latent.query_rank = c.is_null("q_lora_rank") ? 0 : c.width({"q_lora_rank"}, 1536);
  deepseek_experts(c, s, defaults, width, dense);
  return s;
}

}  // namespace

TransformerShape qwen2_moe(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(24, 2048, 16, 16, 5632, 151936, 32768));
  s.qkv_bias = c.flag("qkv_bias", true);
  qwen_experts(c, s, 60, 4, 1408);
  s.moe.shared_intermediate = c.width({"shared_expert_intermediate_size"}, 5632);
  s.moe.shared_gate = true;
  return s;
}

TransformerShape qwen3_moe(ConfigReader& c) {
  // Unlike Qwen 3's dense models, a missing head_dim follows from the hidden size.
  TransformerShape s = rotary_decoder(c, sizes(24, 2048, 32, 4, 6144, 151936, 32768));
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.query_key_norm = TransformerShape::Norm::rms;
  qwen_experts(c, s, 128, 8, 768);
  return s;
}

TransformerShape deepseek_v2(ConfigReader& c) {
  TransformerShape defaults = sizes(32, 4096, 32, 32, 11008, 32000, 2048);
  defaults.moe.experts = 64;
  defaults.moe.shared_intermediate = 2;
  return latent_deepseek(c, defaults, 1407, 0);
}

TransformerShape deepseek_v3(ConfigReader& c) {
  TransformerShape defaults = sizes(61, 7168, 128, 128, 18432, 129280, 4096);
  defaults.moe.experts = 256;
  defaults.moe.per_token = 8;
  defaults.moe.shared_intermediate = 1;
  TransformerShape s = latent_deepseek(c, defaults, 2048, 3);
  s.moe.router_bias = true;
  if (c.count("num_nextn_predict_layers", ConfigReader::kMaximumLayers, 0) > 0)
    s.warnings.emplace_back(
        "num_nextn_predict_layers is not modelled: the layers for predicting further tokens are left out");
  return s;
}

TransformerShape dbrx(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"d_model", "hidden_size"}, 2048);
  s.layers = c.layers({"n_layers", "num_hidden_layers"}, 24);
  s.heads = c.integer({"n_heads", "num_attention_heads"}, ConfigReader::kMaximumHeads, 16);
  ConfigReader attention = c.object("attn_config"), mlp = c.object("ffn_config");
  s.kv_heads = attention.integer({"kv_n_heads"}, ConfigReader::kMaximumHeads, 1);
  c.check_heads(s, "n_heads", "attn_config.kv_n_heads");
  c.vocabulary(s, 32000, 2048, {"max_seq_len", "max_position_embeddings"});
  s.norm = TransformerShape::Norm::layer_unbiased;
  s.mlp = TransformerShape::Mlp::gated;
  s.activation = "silu";
  mlp.experts(s, {"moe_num_experts"}, 4, {"moe_top_k"}, 1);
  s.intermediate = s.moe.intermediate = mlp.width({"ffn_hidden_size"}, 3584);
  s.tied_head = c.flag("tie_word_embeddings", false);
  return s;
}

TransformerShape deepseek(ConfigReader& c) {
  TransformerShape defaults = sizes(30, 4096, 32, 0, 11008, 102400, 2048);
  TransformerShape s = rotary_decoder(c, defaults);
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  // The library's defaults are those of a dense model: what makes it a mixture stands in the file.
  if (c.has("n_routed_experts")) deepseek_experts(c, s, defaults, 1407, 0);
  return s;
}

TransformerShape phimoe(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 8, 6400, 32064, 131072));
  s.norm = TransformerShape::Norm::layer;
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.head_bias = c.flag("lm_head_bias", false);
  c.experts(s, {"num_local_experts"}, 16, {"num_experts_per_tok"}, 2);
  s.moe.intermediate = s.intermediate;
  c.sliding_window(s, true);
  return s;
}

TransformerShape gpt_oss(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(36, 2880, 64, 8, 2880, 201088, 131072), 64);
  s.qkv_bias = s.output_bias = c.flag("attention_bias", true);
  s.attention_sinks = true;
  c.experts(s, {"num_local_experts", "num_experts"}, 128, {"num_experts_per_tok", "experts_per_token"}, 4);
  s.moe.intermediate = s.intermediate;
  s.moe.router_bias = s.moe.expert_bias = true;
  s.activation = "clamped swiglu";
  const std::int64_t window =
      c.is_null("sliding_window") ? 0 : c.integer({"sliding_window"}, ConfigReader::kMaximumPositions, 128);
  if (c.good() && window > 0 && window < s.default_sequence())
    s.warnings.push_back(fmt::format(
        "sliding_window {} is not modelled: attention of every layer is counted over the whole sequence", window));
  return s;
}

}  // namespace turnpoint::huggingface
