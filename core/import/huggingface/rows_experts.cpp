// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyRow> expert_rows() {
  return {
      // Which layers are mixtures: as a list of words says, else by the numbers of the older keys.
      {"-mixture", "", "-rotary", R"(
        qkv_bias = attention_bias; output_bias = attention_bias
        experts = num_local_experts | num_experts | n_routed_experts
        experts_per_token = num_experts_per_tok | num_experts_per_token | moe_topk | moe_k
        expert_intermediate = moe_intermediate_size | intermediate_size
        shared_experts_ = n_shared_experts | num_shared_experts
        shared_intermediate = shared_expert_intermediate_size | $shared_experts_ * $expert_intermediate
        sparse = (mlp_layer_types[$i] | 'sparse') == 'sparse'
        window = $window_
      )"},
      {"mixtral", "Mixtral", "-mixture", R"(
        qkv_bias = false; output_bias = false; shared_intermediate = none; expert_intermediate = intermediate_size)"},
      {"minimax_m2", "MiniMaxM2", "mixtral", "rotary = false; query_key_norm = 'rms'; query_key_scale = 'all_heads'"},
      {"phimoe", "Phimoe PhiMoE", "mixtral", R"(
        norm = 'layer'; qkv_bias = attention_bias; output_bias = attention_bias; head_bias = lm_head_bias)"},
      {"gpt_oss", "GptOss", "mixtral", R"(
        experts = num_local_experts | num_experts; experts_per_token = num_experts_per_tok | experts_per_token
        qkv_bias = attention_bias; output_bias = attention_bias; sinks = true
        router_bias = true; expert_bias = true; activation = 'clamped swiglu'
        window = sliding_window)"},
      {"openai_privacy_filter", "OpenAIPrivacyFilter", "gpt_oss", ""},
      {"granitemoe", "GraniteMoe", "mixtral", "qkv_bias = attention_bias; output_bias = attention_bias"},
      {"granitemoeshared", "GraniteMoeShared", "granitemoe", "shared_intermediate = shared_intermediate_size"},
      {"granitemoe_swa", "GraniteMoeSWA", "granitemoeshared", "sinks = true; window = $window_"},
      {"flex_olmo", "FlexOlmo", "-mixture", R"(
        expert_intermediate = intermediate_size; block = 'norm_after'
        query_key_norm = 'rms'; query_key_scale = 'all_heads')"},
      {"olmoe", "Olmoe", "flex_olmo", "block = 'pre_norm'"},
      {"aria_text", "AriaText", "-mixture", R"(
        experts = moe_num_experts; expert_intermediate = intermediate_size; shared_experts_ = moe_num_shared_experts
        mlp_bias = mlp_bias)"},
      {"qwen2_moe", "Qwen2Moe", "-mixture", R"(
        qkv_bias = qkv_bias; output_bias = false; experts = num_experts | num_local_experts
        sparse = (mlp_layer_types[$i] | (($i + 1) % (decoder_sparse_step | 1) == 0 && !in(mlp_only_layers, $i) ? 'sparse' : 'dense')) == 'sparse'
        shared_gate = true; use_sliding_window := false; qkv_bias := true)"},
      {"qwen3_moe", "Qwen3Moe", "qwen2_moe", R"(
        qkv_bias = attention_bias; output_bias = attention_bias; query_key_norm = 'rms'; shared_gate = false
        shared_intermediate = none)"},
      {"qwen3_vl_moe_text", "Qwen3VLMoeText", "qwen3_moe", ""},
      {"qwen3_omni_moe_text", "Qwen3OmniMoeText Qwen3OmniMoeThinkerText", "qwen3_moe", "uneven_heads = true"},
      {"flint", "Flint", "qwen3_moe", "mlp_only_layers := [0, 1]; sinks = true; shared_intermediate = shared_expert_intermediate_size; use_sliding_window := true"},
      {"mellum", "Mellum", "-mixture", "query_key_norm = 'rms'; shared_intermediate = none"},
      {"kolibri1", "Kolibri1", "-mixture", R"(
        qkv_bias = false; output_bias = false; query_key_norm = 'rms'; block = 'sandwich')"},
      {"laguna", "Laguna", "-mixture", R"(
        query_key_norm = 'rms'; attention_gate = gating ? 'head' : none; router_bias = true
        layer_heads = num_attention_heads_per_layer[$i]
        sparse = (mlp_layer_types[$i] | ($i < 1 ? 'dense' : 'sparse')) == 'sparse')"},
      {"beam", "Beam", "-mixture", R"(
        query_key_norm = 'rms'; block = 'sandwich'; attention_gate = 'channel'
        sparse = (mlp_layer_types[$i] | ($i < 3 ? 'dense' : 'sparse')) == 'sparse')"},
      {"hy_v3", "HYV3", "-mixture", R"(
        query_key_norm = 'rms'
        sparse = (mlp_layer_types[$i] | ($i < (first_k_dense_replace | 1) ? 'dense' : 'sparse')) == 'sparse')"},
      {"-deepseek", "", "-mixture", R"(
        first_ = first_k_dense_replace
        sparse = (mlp_layer_types[$i] | ($i < $first_ || $i % (moe_layer_freq | 1) != 0 ? 'dense' : 'sparse')) == 'sparse'
        expert_groups = n_group)"},
      {"deepseek", "Deepseek", "-deepseek", R"(
        experts = n_routed_experts; expert_groups = none
        hidden_size := 4096; num_hidden_layers := 30; num_attention_heads := 32; intermediate_size := 11008
        vocab_size := 102400; max_position_embeddings := 2048; moe_intermediate_size := 1407)"},
      {"glm4_moe", "Glm4Moe", "-deepseek", R"(
        output_bias = false; uneven_heads = true; query_key_norm = use_qk_norm ? 'rms' : none)"},
      {"glm4v_moe_text", "Glm4vMoeText", "glm4_moe", "query_key_norm = none"},
      {"exaone_moe", "ExaoneMoe", "-deepseek", "qkv_bias = false; output_bias = false; query_key_norm = 'rms'"},
      {"solar_open", "SolarOpen", "-deepseek", ""},
      {"afmoe", "Afmoe", "-deepseek", R"(
        first_ = num_dense_layers; query_key_norm = 'rms'; block = 'sandwich'; attention_gate = 'channel'; router_bias = true
        qkv_bias = false; output_bias = false)"},
      {"ernie4_5_moe", "Ernie4_5_Moe", "-mixture", R"(
        qkv_bias = use_bias; output_bias = use_bias; mlp_bias = use_bias
        experts = moe_num_experts; shared_experts_ = moe_num_shared_experts; router_bias = true
        sparse = ($i + 1) % (moe_layer_interval | 1) == 0 && $i >= (moe_layer_start_index | 0) && $i <= (moe_layer_end_index | $layers))"},
      {"cohere2_moe", "Cohere2Moe", "cohere2", R"(
        experts = num_experts; experts_per_token = num_experts_per_tok; expert_intermediate = intermediate_size
        shared_intermediate = num_shared_experts * intermediate_size
        intermediate = prefix_dense_intermediate_size | intermediate_size
        sparse = (mlp_layer_types[$i] | ($i < (first_k_dense_replace | 0) ? 'dense' : 'sparse')) == 'sparse')"},
      {"llama4_text", "Llama4 Llama4Text", "-mixture", R"(
        experts = num_local_experts; expert_intermediate = intermediate_size; shared_intermediate = intermediate_size
        intermediate = intermediate_size_mlp; query_key_norm = use_qk_norm ? 'bare' : none
        sparse = has(moe_layers) ? in(moe_layers, $i) : ($i + 1) % (interleave_moe_layer_step | 1) == 0)"},
      {"minimax_m3_vl_text", "MiniMaxM3VL MiniMaxM3VLText", "-mixture", R"(
        query_key_norm = 'rms'; expert_intermediate = intermediate_size
        shared_intermediate = shared_intermediate_size; intermediate = dense_intermediate_size)"},
      {"mimo_v2_flash", "MiMoV2Flash", "-deepseek", R"(
        output_bias = false; value_channels = v_head_dim
        first_ = first_k_dense_replace | 1
        kind_ = (layer_types[$i] | ($i == 0 || ($i + 1) % 6 == 0 ? 'full_attention' : 'sliding_attention'))
        layer_sinks = $kind_ == 'sliding_attention'; sinks = true
        layer_kv_heads = $kind_ == 'sliding_attention' ? swa_num_key_value_heads : none)"},
      {"dbrx", "Dbrx", "-mixture", R"(
        hidden = d_model | hidden_size; norm = 'layer_unbiased'; activation = 'silu'
        qkv_bias = false; output_bias = false
        kv_heads = attn_config.kv_n_heads; positions = max_seq_len | max_position_embeddings
        experts = ffn_config.moe_num_experts; experts_per_token = ffn_config.moe_top_k
        intermediate = ffn_config.ffn_hidden_size; expert_intermediate = ffn_config.ffn_hidden_size
        shared_intermediate = none
        d_model := 2048; n_heads := 16; n_layers := 24; max_seq_len := 2048; vocab_size := 32000; attn_config.kv_n_heads := 1
        ffn_config.moe_num_experts := 4; ffn_config.moe_top_k := 1; ffn_config.ffn_hidden_size := 3584)"},
  };
}

}  // namespace turnpoint::huggingface
