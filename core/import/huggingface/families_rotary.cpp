// SPDX-License-Identifier: Apache-2.0
// Decoders after Llama: rotary positions, RMS norms, gated MLPs.
#include "core/import/huggingface/family_functions.h"

namespace turnpoint::huggingface {

TransformerShape rotary_decoder(ConfigReader& c, const TransformerShape& defaults, std::int64_t default_head_channels) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, defaults.hidden);
  s.layers = c.layers({"num_hidden_layers"}, defaults.layers);
  c.heads(s, {"num_attention_heads"}, defaults.heads, defaults.kv_heads, default_head_channels);
  s.intermediate = c.width({"intermediate_size"}, defaults.intermediate);
  c.vocabulary(s, defaults.vocabulary, defaults.positions);
  s.activation = c.text({"hidden_act", "hidden_activation"}, "silu");
  s.norm = TransformerShape::Norm::rms;
  s.mlp = TransformerShape::Mlp::gated;
  s.tied_head = c.flag("tie_word_embeddings", defaults.tied_head);
  return s;
}

TransformerShape sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                       std::int64_t intermediate, std::int64_t vocabulary, std::int64_t positions) {
  TransformerShape s;
  s.layers = layers;
  s.hidden = hidden;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.intermediate = intermediate;
  s.vocabulary = vocabulary;
  s.positions = positions;
  return s;
}

TransformerShape llama(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 0, 11008, 32000, 2048));
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.mlp_bias = c.flag("mlp_bias", false);
  return s;
}

TransformerShape mistral(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 8, 14336, 32000, 131072));
  c.sliding_window(s, true);
  return s;
}

TransformerShape qwen2(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 32, 22016, 151936, 32768));
  s.qkv_bias = true;
  c.sliding_window(s, c.flag("use_sliding_window", false));
  return s;
}

TransformerShape qwen3(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 32, 22016, 151936, 32768), 128);
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.query_key_norm = TransformerShape::Norm::rms;
  c.sliding_window(s, c.flag("use_sliding_window", false));
  return s;
}

TransformerShape gemma(ConfigReader& c) {
  TransformerShape defaults = sizes(28, 3072, 16, 16, 24576, 256000, 8192);
  defaults.tied_head = true;
  TransformerShape s = rotary_decoder(c, defaults, 256);
  s.activation = c.text({"hidden_activation", "hidden_act"}, "gelu_pytorch_tanh");
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  return s;
}

namespace {

TransformerShape later_gemma(ConfigReader& c, TransformerShape defaults) {
  defaults.tied_head = true;
  TransformerShape s = rotary_decoder(c, defaults, 256);
  s.activation = c.text({"hidden_activation", "hidden_act"}, "gelu_pytorch_tanh");
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.block = TransformerShape::Block::sandwich;
  c.sliding_window(s, true);
  return s;
}

}  // namespace

TransformerShape gemma2(ConfigReader& c) { return later_gemma(c, sizes(26, 2304, 8, 4, 9216, 256000, 8192)); }

TransformerShape gemma3(ConfigReader& c) {
  TransformerShape s = later_gemma(c, sizes(26, 2304, 8, 4, 9216, 262208, 131072));
  s.query_key_norm = TransformerShape::Norm::rms;
  return s;
}

TransformerShape phi3(ConfigReader& c) {
  // The library stores q, k, v as one matrix and gate, up as another; apart they are as large.
  TransformerShape s = rotary_decoder(c, sizes(32, 3072, 32, 0, 8192, 32064, 4096));
  c.sliding_window(s, true);
  return s;
}

TransformerShape olmo(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 0, 11008, 50304, 2048));
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.norm = TransformerShape::Norm::bare;
  return s;
}

TransformerShape stablelm(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 2560, 32, 32, 6912, 50304, 4096));
  s.norm = TransformerShape::Norm::layer;
  s.qkv_bias = c.flag("use_qkv_bias", false);
  if (c.flag("use_parallel_residual", false)) s.block = TransformerShape::Block::parallel;
  if (c.flag("qk_layernorm", false)) c.fail("qk_layernorm", "norms of queries and keys are not supported here");
  return s;
}

TransformerShape hf_olmo(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"d_model"}, 768);
  s.layers = c.layers({"n_layers"}, 12);
  s.heads = c.integer({"n_heads"}, ConfigReader::kMaximumHeads, 12);
  s.kv_heads =
      c.flag("multi_query_attention", false) ? 1 : c.integer({"n_kv_heads"}, ConfigReader::kMaximumHeads, s.heads);
  c.check_heads(s, "n_heads", "n_kv_heads");
  // The ratio is that of gate and up together.
  const std::int64_t both = c.width({"mlp_hidden_size"}, c.integer({"mlp_ratio"}, 1024, 4) * s.hidden);
  if (c.good() && (both < 2 || both % 2 != 0)) c.fail("mlp_hidden_size", "must be even");
  s.intermediate = both / 2;
  c.vocabulary(s, 50257, 1024, {"max_sequence_length"});
  s.vocabulary = c.integer({"embedding_size"}, ConfigReader::kMaximumVocabulary, s.vocabulary);
  s.norm = c.flag("layer_norm_with_affine", true) ? TransformerShape::Norm::layer : TransformerShape::Norm::bare;
  if (s.norm == TransformerShape::Norm::layer && !c.flag("bias_for_layer_norm", c.flag("include_bias", true)))
    s.norm = TransformerShape::Norm::layer_unbiased;
  s.mlp = TransformerShape::Mlp::gated;
  s.activation = "silu";
  s.qkv_bias = s.output_bias = s.mlp_bias = c.flag("include_bias", true);
  s.tied_head = c.flag("weight_tying", true);
  if (c.text({"activation_type"}, "swiglu") != "swiglu") c.fail("activation_type", "only 'swiglu' is supported");
  return s;
}

TransformerShape granite(ConfigReader& c) {
  // Its multipliers of embeddings, scores, residuals and logits are numbers, not parameters.
  return llama(c);
}

TransformerShape olmo2(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 0, 11008, 50304, 2048));
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.block = TransformerShape::Block::norm_after;
  s.query_key_norm = TransformerShape::Norm::rms;
  s.query_key_scale = TransformerShape::QueryKeyScale::all_heads;
  return s;
}

// ChatGLM 2 and 3 and GLM-4; the first ChatGLM has the same name and another structure.
TransformerShape chatglm(ConfigReader& c) {
  TransformerShape s;
  if (c.has("position_encoding_2d") || c.has("inner_hidden_size")) {
    c.fail(
        "model_type",
        "the first ChatGLM (positions in two dimensions, scaled residuals) is not supported; ChatGLM 2 and later are");
    return s;
  }
  s.hidden = c.width({"hidden_size"}, 4096);
  s.layers = c.layers({"num_layers", "num_hidden_layers"}, 28);
  s.heads = c.integer({"num_attention_heads"}, ConfigReader::kMaximumHeads, 32);
  s.kv_heads = c.flag("multi_query_attention", false)
                   ? c.integer({"multi_query_group_num"}, ConfigReader::kMaximumHeads, 1)
                   : s.heads;
  s.head_channels = c.width({"kv_channels"}, 128);
  c.check_heads(s, "num_attention_heads", "multi_query_group_num");
  s.intermediate = c.width({"ffn_hidden_size"}, 13696);
  c.vocabulary(s, 65024, 2048, {"seq_length"});
  s.vocabulary = c.integer({"padded_vocab_size"}, ConfigReader::kMaximumVocabulary, s.vocabulary);
  s.activation = "silu";
  s.norm = c.flag("rmsnorm", true) ? TransformerShape::Norm::rms : TransformerShape::Norm::layer;
  s.mlp = TransformerShape::Mlp::gated;
  s.output_bias = s.mlp_bias = c.flag("add_bias_linear", false);
  s.qkv_bias = s.output_bias || c.flag("add_qkv_bias", false);
  s.tied_head = c.flag("tie_word_embeddings", false);
  if (c.flag("apply_residual_connection_post_layernorm", false))
    c.fail("apply_residual_connection_post_layernorm", "is not supported: residuals begin before the norm");
  if (!c.flag("post_layer_norm", true)) c.fail("post_layer_norm", "a stack without a last norm is not supported");
  return s;
}

}  // namespace turnpoint::huggingface
