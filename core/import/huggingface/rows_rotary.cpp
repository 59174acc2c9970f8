// SPDX-License-Identifier: Apache-2.0
// Decoders after Llama: rotary positions, RMS norms, gated MLPs.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyRow> rotary_rows() {
  return {
      {"-rotary", "", "-model", "norm = 'rms'; mlp = 'gated'; rotary = (partial_rotary_factor | 1) == 1; hidden_act := \"silu\""},
      {"llama", "Llama", "-rotary", R"(
        qkv_bias = attention_bias; output_bias = attention_bias; mlp_bias = mlp_bias)"},
      {"arcee", "Arcee", "llama", "mlp = 'plain'"},
      {"helium", "Helium", "llama", "output_bias = false"},
      {"internlm3", "InternLM3", "llama", "qkv_bias = attention_bias | qkv_bias; output_bias = attention_bias | bias; mlp_bias = mlp_bias | bias"},
      {"iquestcoder", "IQuestCoder", "llama", ""},
      {"smollm3", "SmolLM3", "llama", "window = $window_"},
      {"cwm", "Cwm", "llama", "qkv_bias = false; output_bias = false; window = $window_"},
      {"seed_oss", "SeedOss", "llama", "output_bias = attention_out_bias"},
      {"granite", "Granite", "llama", ""},
      {"granite_swa", "GraniteSWA", "llama", "sinks = true; window = $window_"},
      {"granite_docling_text", "GraniteDoclingText", "granite", ""},
      {"hyperclovax", "HyperCLOVAX", "llama", "block = use_post_norm ? 'sandwich' : 'pre_norm'"},
      {"ernie4_5", "Ernie4_5", "-rotary", "qkv_bias = use_bias; output_bias = use_bias; mlp_bias = use_bias"},
      {"doge", "Doge", "llama", R"(
        query_key_norm = 'rms'; residual_scale = true; value_mask = true; window = sliding_window
        note: keep_window_size > 0: keep_window_size is not modelled: attention is counted over the whole sequence
        refuse is_moe: is_moe: its mixture of single neurons, found by products of two keys, is not supported)"},
      {"diffllama", "DiffLlama", "llama", "mlp_bias = false"},
      {"bitnet", "BitNet", "llama", "attention_norm = true; mlp_norm = true; mlp_bias = false; activation = 'relu2'"},
      {"apertus", "Apertus", "llama", "mlp = 'plain'; query_key_norm = 'rms'; mlp_bias = false; activation = 'xielu'"},
      {"nanochat", "NanoChat", "llama", "norm = 'bare'; mlp = 'plain'; mlp_bias = false; query_key_norm = 'bare'"},
      {"mistral", "Mistral", "-rotary", "window = $window_"},
      {"ministral3", "Ministral3", "mistral", ""},
      {"qwen2", "Qwen2", "-rotary", "qkv_bias = true; window = $window_; use_sliding_window := false"},
      {"qwen2_vl_text", "Qwen2VLText", "qwen2", ""},
      {"qwen2_5_vl_text", "Qwen2_5_VLText", "qwen2", ""},
      {"qwen3", "Qwen3", "llama", "mlp_bias = false; query_key_norm = 'rms'; window = $window_; use_sliding_window := false"},
      {"qwen3_vl_text", "Qwen3VLText", "qwen3", ""},
      {"gemma", "Gemma", "llama", "mlp_bias = false; activation = hidden_activation | hidden_act"},
      {"gemma2", "Gemma2", "gemma", "block = 'sandwich'; window = $window_"},
      {"gemma3_text", "Gemma3 Gemma3Text", "gemma2", "query_key_norm = 'rms'"},
      {"vaultgemma", "VaultGemma", "gemma", "window = $window_"},
      {"phi3", "Phi3", "-rotary", "window = $window_"},
      {"olmo", "Olmo", "llama", "mlp_bias = false; norm = 'bare'"},
      {"olmo2", "Olmo2", "llama", "mlp_bias = false; block = 'norm_after'; query_key_norm = 'rms'; query_key_scale = 'all_heads'"},
      {"olmo3", "Olmo3", "olmo2", "window = $window_"},
      {"exaone4", "Exaone4", "-rotary", "block = 'norm_after'; query_key_norm = 'rms'; window = $window_"},
      {"stablelm", "StableLm", "-rotary", R"(
        norm = 'layer'; rotary = false; qkv_bias = use_qkv_bias; block = use_parallel_residual ? 'parallel' : 'pre_norm'
        refuse qk_layernorm: qk_layernorm: norms of queries and keys are not supported here)"},
      {"glm", "Glm", "-rotary", "rotary = false; qkv_bias = attention_bias"},
      {"glm4", "Glm4", "glm", "block = 'sandwich'"},
      {"glm4v_text", "Glm4vText", "glm4", "qkv_bias = true"},
      {"glm_ocr_text", "GlmOcrText", "glm4", "qkv_bias = false"},
      {"glm_image_text", "GlmImageText", "glm4", "qkv_bias = true"},
      {"moshi", "Moshi", "-rotary", "intermediate = ffn_dim / 2; window = $window_"},
      {"hf_olmo", "OLMo", "-rotary", R"(
        hidden = d_model; heads = n_heads; layers = n_layers
        kv_heads = multi_query_attention ? 1 : n_kv_heads | $heads
        both_ = mlp_hidden_size | mlp_ratio * $hidden
        intermediate = $both_ / 2
        vocabulary = embedding_size | vocab_size; positions = max_sequence_length
        norm = !layer_norm_with_affine ? 'bare' : bias_for_layer_norm | include_bias ? 'layer' : 'layer_unbiased'
        activation = 'silu'; tied = weight_tying
        qkv_bias = include_bias; output_bias = include_bias; mlp_bias = include_bias
        d_model := 768; n_layers := 12; n_heads := 12; mlp_ratio := 4; vocab_size := 50257; max_sequence_length := 1024
        layer_norm_with_affine := true; include_bias := true; weight_tying := true; activation_type := "swiglu"
        refuse mlp_hidden_size: $both_ % 2 != 0: must be even
        refuse activation_type: activation_type != 'swiglu': only 'swiglu' is supported)"},
      {"chatglm", "ChatGLM", "-rotary", R"(
        layers = num_layers | num_hidden_layers
        kv_heads = multi_query_attention ? multi_query_group_num : $heads
        head_channels = kv_channels; intermediate = ffn_hidden_size
        vocabulary = padded_vocab_size | vocab_size; positions = seq_length
        activation = 'silu'; norm = rmsnorm ? 'rms' : 'layer'; rotary = false
        output_bias = add_bias_linear; mlp_bias = add_bias_linear; qkv_bias = add_bias_linear || add_qkv_bias
        head = $class == 'ForSequenceClassification' ? 'one' : none
        hidden_size := 4096; num_layers := 28; num_attention_heads := 32; multi_query_group_num := 1; kv_channels := 128
        ffn_hidden_size := 13696; vocab_size := 65024; seq_length := 2048; rmsnorm := true; post_layer_norm := true
        refuse model_type: has(position_encoding_2d) || has(inner_hidden_size): the first ChatGLM (positions in two dimensions, scaled residuals) is not supported; ChatGLM 2 and later are
        refuse apply_residual_connection_post_layernorm: apply_residual_connection_post_layernorm: is not supported: residuals begin before the norm
        refuse post_layer_norm: !post_layer_norm: a stack without a last norm is not supported)"},
  };
}

}  // namespace turnpoint::huggingface
