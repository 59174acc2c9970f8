// SPDX-License-Identifier: Apache-2.0
// Decoders with LayerNorm: GPT-2 and what came between it and Llama.
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/import/huggingface/family_functions.h"

namespace turnpoint::huggingface {

using Block = TransformerShape::Block;
using Norm = TransformerShape::Norm;

TransformerShape gpt2(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"n_embd", "hidden_size"}, 768);
  s.layers = c.layers({"n_layer", "num_hidden_layers"}, 12);
  c.heads(s, {"n_head", "num_attention_heads"}, 12);
  s.intermediate = c.width({"n_inner", "intermediate_size"}, 4 * s.hidden);
  c.vocabulary(s, 50257, 1024, {"n_positions", "max_position_embeddings", "n_ctx"});
  s.activation = c.text({"activation_function", "hidden_act"}, "gelu_new");
  s.learned_positions = s.qkv_bias = s.output_bias = s.mlp_bias = true;
  s.tied_head = c.flag("tie_word_embeddings", true);
  if (c.flag("add_cross_attention", false)) c.fail("add_cross_attention", "cross attention is not supported");
  return s;
}

TransformerShape gptj(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"n_embd", "hidden_size"}, 4096);
  s.layers = c.layers({"n_layer", "num_hidden_layers"}, 28);
  c.heads(s, {"n_head", "num_attention_heads"}, 16);
  s.intermediate = c.width({"n_inner", "intermediate_size"}, 4 * s.hidden);
  c.vocabulary(s, 50400, 2048, {"n_positions", "max_position_embeddings", "n_ctx"});
  s.activation = c.text({"activation_function", "hidden_act"}, "gelu_new");
  s.block = Block::parallel;
  s.mlp_bias = s.head_bias = true;
  s.tied_head = c.flag("tie_word_embeddings", false);
  return s;
}

TransformerShape gpt_neox(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, 6144);
  s.layers = c.layers({"num_hidden_layers"}, 44);
  c.heads(s, {"num_attention_heads"}, 64);
  s.intermediate = c.width({"intermediate_size"}, 24576);
  c.vocabulary(s, 50432, 2048);
  s.activation = c.text({"hidden_act"}, "gelu");
  s.block = c.flag("use_parallel_residual", true) ? Block::parallel_two_norms : Block::pre_norm;
  s.qkv_bias = s.output_bias = c.flag("attention_bias", true);
  s.mlp_bias = true;
  s.tied_head = c.flag("tie_word_embeddings", false);
  return s;
}

TransformerShape bloom(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size", "n_embed", "n_embd"}, 64);
  s.layers = c.layers({"n_layer", "num_hidden_layers"}, 2);
  c.heads(s, {"n_head", "num_attention_heads"}, 8);
  s.intermediate = c.width({"n_inner"}, 4 * s.hidden);
  c.vocabulary(s, 250880, 2048, {"seq_length", "max_position_embeddings"});
  s.qkv_bias = s.output_bias = s.mlp_bias = s.embedding_norm = true;
  s.tied_head = c.flag("tie_word_embeddings", true);
  return s;
}

TransformerShape falcon(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size", "n_embed"}, 4544);
  s.layers = c.layers({"num_hidden_layers", "n_layer"}, 32);
  s.heads = c.integer({"num_attention_heads", "n_head"}, ConfigReader::kMaximumHeads, 71);
  const bool groups = c.flag("new_decoder_architecture", false), one_key = c.flag("multi_query", true);
  const std::int64_t listed = c.integer({"num_kv_heads", "n_head_kv"}, ConfigReader::kMaximumHeads, s.heads);
  s.kv_heads = groups ? listed : one_key ? 1 : s.heads;
  c.check_heads(s, "num_attention_heads", "num_kv_heads");
  s.intermediate = c.width({"ffn_hidden_size"}, 4 * s.hidden);
  c.vocabulary(s, 65024, 2048);
  s.activation = c.text({"activation"}, "gelu");
  const std::int64_t norms = c.integer({"num_ln_in_parallel_attn"}, 2, groups ? 2 : 1);
  const bool parallel = groups || c.flag("parallel_attn", true);
  s.block = !parallel ? Block::pre_norm : groups && norms == 2 ? Block::parallel_two_norms : Block::parallel;
  s.qkv_bias = s.output_bias = s.mlp_bias = c.flag("bias", false);
  s.tied_head = c.flag("tie_word_embeddings", true);
  return s;
}

TransformerShape mpt(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"d_model", "hidden_size"}, 2048);
  s.layers = c.layers({"n_layers", "num_hidden_layers"}, 24);
  ConfigReader attention = c.object("attn_config");
  s.heads = c.integer({"n_heads", "num_attention_heads"}, ConfigReader::kMaximumHeads, 16);
  const bool one_key = attention.text({"attn_type"}, "multihead_attention") == "multiquery_attention";
  s.kv_heads = attention.integer({"kv_n_heads"}, ConfigReader::kMaximumHeads, one_key ? 1 : s.heads);
  c.check_heads(s, "n_heads", "attn_config.kv_n_heads");
  s.intermediate = c.integer({"expansion_ratio"}, 1024, 4) * s.hidden;
  c.vocabulary(s, 50368, 2048, {"max_seq_len", "max_position_embeddings"});
  const bool biased = !c.flag("no_bias", true);
  s.qkv_bias = s.output_bias = s.mlp_bias = biased;
  s.norm = biased ? Norm::layer : Norm::layer_unbiased;
  // The library's class knows no table of positions: attention is biased by distance, without parameters.
  s.tied_head = c.flag("tie_word_embeddings", true);
  if (attention.flag("qk_ln", false)) attention.fail("qk_ln", "is not supported");
  return s;
}

TransformerShape opt(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, 768);
  s.layers = c.layers({"num_hidden_layers"}, 12);
  c.heads(s, {"num_attention_heads"}, 12);
  s.intermediate = c.width({"ffn_dim"}, 3072);
  c.vocabulary(s, 50272, 2048);
  s.activation = c.text({"activation_function"}, "relu");
  s.learned_positions = s.own_output_projection = true;
  s.spare_positions = 2;
  s.embedding_channels = c.width({"word_embed_proj_dim"}, s.hidden);
  s.block = c.flag("do_layer_norm_before", true) ? Block::pre_norm : Block::post_norm;
  s.norm = c.flag("layer_norm_elementwise_affine", true) ? Norm::layer : Norm::bare;
  s.qkv_bias = s.output_bias = s.mlp_bias = c.flag("enable_bias", true);
  s.tied_head = c.flag("tie_word_embeddings", true);
  return s;
}

TransformerShape phi(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size", "n_embd"}, 2048);
  s.layers = c.layers({"num_hidden_layers", "n_layer"}, 24);
  c.heads(s, {"num_attention_heads", "n_head"}, 32);
  s.intermediate = c.width({"intermediate_size", "n_inner"}, 8192);
  c.vocabulary(s, 51200, 2048, {"max_position_embeddings", "n_positions"});
  s.activation = c.text({"hidden_act", "activation_function"}, "gelu_new");
  s.block = Block::parallel;
  s.qkv_bias = s.output_bias = s.mlp_bias = s.head_bias = true;
  if (c.flag("qk_layernorm", false)) s.query_key_norm = Norm::layer;
  s.tied_head = c.flag("tie_word_embeddings", false);
  return s;
}

TransformerShape gpt_bigcode(ConfigReader& c) {
  TransformerShape s = gpt2(c);
  s.activation = c.text({"activation_function", "hidden_act"}, "gelu_pytorch_tanh");
  s.kv_heads = c.flag("multi_query", true) ? 1 : s.heads;
  return s;
}

namespace {

/// Whether some layer of GPT-Neo looks at its neighbourhood only: [[["global", "local"], 12]], or a list of names.
bool has_local_layer(const nlohmann::json& types) {
  if (types.is_string()) return types.get<std::string>() == "local";
  return types.is_array() && std::any_of(types.begin(), types.end(), has_local_layer);
}

}  // namespace

TransformerShape gpt_neo(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, 2048);
  s.layers = c.layers({"num_layers", "num_hidden_layers"}, 24);
  c.heads(s, {"num_heads", "num_attention_heads"}, 16);
  s.intermediate = c.width({"intermediate_size"}, 4 * s.hidden);
  c.vocabulary(s, 50257, 2048);
  s.activation = c.text({"activation_function", "hidden_act"}, "gelu_new");
  s.learned_positions = s.output_bias = s.mlp_bias = true;
  s.tied_head = c.flag("tie_word_embeddings", true);
  const std::int64_t window = c.integer({"window_size"}, ConfigReader::kMaximumPositions, 256);
  const auto& json = c.fields().json();
  const char* key = json.contains("attention_types") ? "attention_types" : "attention_layers";
  const bool local = !json.contains(key) || has_local_layer(json[key]);
  if (c.good() && local && window < s.default_sequence())
    s.warnings.push_back(fmt::format(
        "window_size {} of the local layers is not modelled: attention is counted over the whole sequence", window));
  return s;
}

TransformerShape starcoder2(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, 3072);
  s.layers = c.layers({"num_hidden_layers"}, 30);
  c.heads(s, {"num_attention_heads"}, 24, 2);
  s.intermediate = c.width({"intermediate_size"}, 12288);
  c.vocabulary(s, 49152, 4096);
  s.activation = c.text({"hidden_act"}, "gelu_pytorch_tanh");
  s.qkv_bias = s.output_bias = s.mlp_bias = c.flag("use_bias", true);
  s.tied_head = c.flag("tie_word_embeddings", true);
  c.sliding_window(s, true);
  return s;
}

TransformerShape cohere(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, 8192);
  s.layers = c.layers({"num_hidden_layers"}, 40);
  c.heads(s, {"num_attention_heads"}, 64);
  s.intermediate = c.width({"intermediate_size"}, 22528);
  c.vocabulary(s, 256000, 8192);
  s.activation = c.text({"hidden_act"}, "silu");
  s.norm = Norm::layer_unbiased;
  s.block = Block::parallel;
  s.mlp = TransformerShape::Mlp::gated;
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  if (c.flag("use_qk_norm", false)) {
    s.query_key_norm = Norm::layer_unbiased;
    s.query_key_scale = TransformerShape::QueryKeyScale::head;
  }
  s.tied_head = c.flag("tie_word_embeddings", true);
  return s;
}

}  // namespace turnpoint::huggingface
