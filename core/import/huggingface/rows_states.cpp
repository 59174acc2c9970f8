// SPDX-License-Identifier: Apache-2.0
// Layers that carry a state along the sequence, alone or among layers that attend.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyRow> state_rows() {
  return {
      {"mamba", "Mamba", "-rotary", R"(
        rotary = false
        heads = 1; kv_heads = 1; head_channels = 1; intermediate = none; window = none
        scan_inner = intermediate_size | expand * $hidden; scan_state = state_size; scan_kernel = conv_kernel
        rank_ = time_step_rank == 'auto' ? none : time_step_rank
        scan_rank = $rank_ | ($hidden + 15) / 16
        scan_convolution_bias = use_conv_bias; scan_bias = use_bias
        mixer = 'mamba'; feed_forward = 'none'; time_step_rank := "auto")"},
      {"rwkv", "Rwkv", "-model", R"(
        heads = 1; kv_heads = 1; head_channels = 1; positions = context_length | 1024; embedding_norm = true
        recurrence_channels = attention_hidden_size | $hidden; intermediate = intermediate_size | 4 * $hidden
        activation = 'relu2'; mixer = 'weighted_average'; feed_forward = 'gated_mix')"},
      {"zamba", "Zamba", "mamba", R"(
        heads = num_attention_heads; kv_heads = num_key_value_heads | $heads; head_channels = attention_head_dim | (2 * $hidden / $heads)
        intermediate = intermediate_size; activation = hidden_mamba_act | 'silu'; norm = 'rms'; mlp_bias = false
        scan_inner = mamba_expand * $hidden; scan_state = mamba_d_state; scan_kernel = mamba_d_conv
        rank_ = mamba_dt_rank == 'auto' ? none : mamba_dt_rank
        scan_convolution_bias = mamba_conv_bias; scan_bias = mamba_proj_bias
        positions = max_position_embeddings | 4096; shared_blocks = 1
        layer_shared = (layers_block_type[$i] | (in(hybrid_layer_ids, $i) || !has(hybrid_layer_ids) && !has(layers_block_type) && $by_period_ ? 'hybrid' : 'mamba')) == 'hybrid'
        by_period_ = $i == 2 || $i > 2 && ($i - 3) % attn_layer_period == attn_layer_offset
        mamba_conv_bias := true; mamba_dt_rank := "auto"; mamba_expand := 2; mamba_d_state := 16; mamba_d_conv := 4
        tie_word_embeddings := true)"},
      {"zamba2", "Zamba2", "zamba", R"(
        activation = hidden_act | 'gelu'; mlp_bias = add_bias_linear; mixer = 'mamba2'
        scan_heads = n_mamba_heads; scan_groups = mamba_ngroups; scan_chunk = chunk_size; scan_norm = true; scan_rank = none
        scan_convolution_bias = use_conv_bias; scan_bias = add_bias_linear
        shared_blocks = num_mem_blocks; shared_rank = adapter_rank; shared_attention_rank = use_shared_attention_adapter
        by_period_ = $i == 47 || $i == 51 || $i > 0 && $i % 6 == 0 && $i <= 42
        use_conv_bias := true; adapter_rank := 128; num_mem_blocks := 1; mamba_d_state := 64; mamba_ngroups := 1
        n_mamba_heads := 8; chunk_size := 256)"},
      {"falcon_mamba", "FalconMamba", "mamba", "time_step_rank := \"auto\""},
      {"mamba2", "Mamba2", "mamba", R"(
        scan_inner = expand * $hidden; scan_heads = num_heads; scan_groups = n_groups; scan_chunk = chunk_size
        scan_norm = true; scan_rank = none; mixer = 'mamba2')"},
      {"-bamba", "", "llama", R"(
        rotary = false
        scan_inner = mamba_d_ssm | mamba_expand * $hidden; scan_state = mamba_d_state; scan_kernel = mamba_d_conv
        scan_heads = mamba_n_heads; scan_groups = mamba_n_groups; scan_chunk = mamba_chunk_size
        scan_convolution_bias = mamba_conv_bias; scan_bias = mamba_proj_bias; scan_norm = true)"},
      {"bamba", "Bamba", "-bamba", R"(
        mixer = layer_types[$i] == 'full_attention' || in(attn_layer_indices, $i) ? 'attention' : 'mamba2')"},
      {"falcon_h1", "FalconH1", "-bamba", R"(
        scan_norm = mamba_rms_norm; mixer = 'attention_and_mamba2')"},
      {"granitemoehybrid", "GraniteMoeHybrid", "-bamba", R"(
        kind_ = (layer_types[$i] | layers_block_type[$i] | 'linear_attention')
        mixer = $kind_ == 'full_attention' || $kind_ == 'attention' ? 'attention' : 'mamba2'
        experts = num_local_experts > 0 ? num_local_experts : none; experts_per_token = num_experts_per_tok
        expert_intermediate = intermediate_size
        shared_intermediate = $experts > 0 ? shared_intermediate_size : none
        intermediate = $experts > 0 ? intermediate_size : shared_intermediate_size)"},
      {"jamba", "Jamba", "-mixture", R"(
        rotary = false
        qkv_bias = false; output_bias = false; experts = num_experts; expert_intermediate = intermediate_size
        shared_intermediate = none
        scan_inner = mamba_expand * $hidden; scan_state = mamba_d_state; scan_kernel = mamba_d_conv
        rank_ = mamba_dt_rank == 'auto' ? none : mamba_dt_rank
        scan_rank = $rank_ | ($hidden + 15) / 16
        scan_convolution_bias = mamba_conv_bias; scan_bias = mamba_proj_bias; scan_part_norms = true; mamba_dt_rank := "auto"
        mixer = $i % attn_layer_period == attn_layer_offset ? 'attention' : 'mamba'
        sparse = $i % expert_layer_period == expert_layer_offset && num_experts > 1)"},
      // One branch a layer: a scan, attention, an MLP or a mixture, as a list of words or a pattern of letters says.
      {"nemotron_h", "NemotronH", "-mixture", R"(
        rotary = false
        layers = size(layers_block_type) | num_hidden_layers | size(hybrid_override_pattern)
        kind_ = letter(hybrid_override_pattern, $i) | layers_block_type[$i]
        mixer = $kind_ == 'linear_attention' || $kind_ == 'mamba' || $kind_ == 'M' ? 'mamba2' : $kind_ == 'full_attention' || $kind_ == 'attention' || $kind_ == '*' ? 'attention' : 'none'
        feed_forward = $kind_ == 'moe' || $kind_ == 'E' ? 'experts' : $kind_ == 'mlp' || $kind_ == '-' ? 'dense' : 'none'
        mlp = 'plain'; activation = mlp_hidden_act; mlp_bias = mlp_bias
        experts = n_routed_experts > 0 ? n_routed_experts : none; sparse = none
        shared_intermediate = moe_shared_expert_intermediate_size * n_shared_experts
        scan_inner = mamba_num_heads * mamba_head_dim; scan_state = ssm_state_size; scan_kernel = conv_kernel
        scan_heads = mamba_num_heads; scan_groups = n_groups; scan_chunk = chunk_size
        scan_convolution_bias = use_conv_bias; scan_bias = mamba_proj_bias | use_bias; scan_norm = true
        layers_block_type := ["mamba", "moe", "attention", "mlp"]
        refuse moe_latent_size: moe_latent_size > 0: experts behind a bottleneck are not supported)"},
      {"qwen3_next", "Qwen3Next", "qwen3_moe", R"(
        rotary = false
        attention_gate = 'channel'; shared_intermediate = shared_expert_intermediate_size; shared_gate = true
        window = none
        delta_key_heads = linear_num_key_heads; delta_value_heads = linear_num_value_heads
        delta_key_channels = linear_key_head_dim; delta_value_channels = linear_value_head_dim
        delta_kernel = linear_conv_kernel_dim
        mixer = (layer_types[$i] | (($i + 1) % (full_attention_interval | 4) == 0 ? 'full_attention' : 'linear_attention')) == 'linear_attention' ? 'delta' : 'attention')"},
      {"qwen3_5_moe_text", "Qwen3_5Moe Qwen3_5MoeText", "qwen3_next", "intermediate = moe_intermediate_size"},
      {"qwen3_5_text", "Qwen3_5 Qwen3_5Text", "qwen3_next", R"(
        experts = none; sparse = none; shared_intermediate = none)"},
      {"olmo_hybrid", "OlmoHybrid", "qwen3_5_text", R"(
        attention_gate = none; query_key_norm = 'rms'; query_key_scale = 'all_heads'
        delta_key_heads = linear_num_key_heads | $heads; delta_value_heads = linear_num_value_heads | $heads
        delta_key_channels = linear_key_head_dim | (3 * $hidden / (4 * $heads))
        delta_value_channels = linear_value_head_dim | (2 * $delta_key_channels)
        layer_block = (layer_types[$i] | (($i + 1) % 4 == 0 ? 'full_attention' : 'linear_attention')) == 'full_attention' ? 'norm_after' : 'pre_norm')"},
      // Latent attention without rotary queries' bottleneck beside Kimi's delta attention.
      {"kimi_linear", "KimiLinear", "deepseek_v2", R"(
        delta_key_heads = linear_num_heads | linear_attn_config.num_heads; delta_value_heads = $delta_key_heads
        delta_key_channels = linear_head_dim | linear_attn_config.head_dim; delta_value_channels = $delta_key_channels
        delta_kernel = linear_conv_kernel_dim | linear_attn_config.short_conv_kernel_size
        delta_channel_decay = true; delta_decay_rank = $delta_key_channels; delta_gate_rank = $delta_key_channels
        expert_groups = num_expert_group; positions = model_max_length | max_position_embeddings | 4096
        mixer = (layer_types[$i] | (in(linear_attn_config.full_attn_layers, $i + 1) ? 'full_attention' : 'linear_attention')) == 'linear_attention' ? 'delta' : 'attention')"},
      {"bailing_hybrid", "BailingHybrid", "kimi_linear", R"(
        delta_decay_rank = none; delta_gate_rank = none; attention_gate = 'head'
        mixer = (layer_types[$i] | (($i + 1) % layer_group_size == 0 ? 'full_attention' : 'linear_attention')) == 'linear_attention' ? 'delta' : 'attention')"},
      {"xlstm", "xLSTM", "-rotary", R"(
        hidden = hidden_size | embedding_dim; layers = num_hidden_layers | num_blocks
        heads = num_heads; kv_heads = $heads; head_channels = $delta_key_channels; activation = 'silu'
        raw_ = $hidden * ffn_proj_factor; keys_ = $hidden * qk_dim_factor; values_ = $hidden * v_dim_factor
        intermediate = up($raw_ - $raw_ % 1, ffn_round_up_to_multiple_of | 64)
        delta_key_heads = num_heads; delta_value_heads = num_heads; delta_chunk = chunk_size
        delta_key_channels = ($keys_ - $keys_ % 1) / num_heads
        delta_value_channels = ($values_ - $values_ % 1) / num_heads
        mixer = 'matrix_memory'
        refuse use_bias: use_bias: products and norms with biases are not supported here
        refuse add_out_norm: !add_out_norm: a stack without a last norm is not supported)"},
      // What no operator stands for.
      {"gemma3n_text", "Gemma3n Gemma3nText", "", "refuse model_type: true: its layers mix four streams of states, and there is no operator for it"},
      {"splinter", "Splinter", "", "refuse model_type: true: its head selects spans by products of pairs of positions, and there is no operator for it"},
      {"lfm2", "Lfm2", "-rotary", R"(
        raw_ = block_auto_adjust_ff_dim ? (2 * (block_ff_dim | intermediate_size)) / 3 : none
        adjusted_ = block_auto_adjust_ff_dim ? up($raw_ * (block_ffn_dim_multiplier | 1), block_multiple_of | 256) : none
        intermediate = block_auto_adjust_ff_dim ? $adjusted_ : block_ff_dim | intermediate_size
        query_key_norm = 'rms'; short_kernel = conv_L_cache; short_bias = conv_bias
        tied = tie_word_embeddings | tie_embedding | true
        mixer = (layer_types[$i] | (!has(full_attn_idxs) || in(full_attn_idxs, $i) ? 'full_attention' : 'conv')) == 'conv' ? 'convolution' : 'attention')"},
      {"lfm2_moe", "Lfm2Moe", "lfm2", R"(
        intermediate = intermediate_size; experts = num_experts; experts_per_token = num_experts_per_tok
        expert_intermediate = moe_intermediate_size; sparse = $i >= num_dense_layers)"},
      {"lfm3", "Lfm3", "lfm2", R"(
        intermediate = intermediate_size; attention_gate = use_attention_gate ? 'head' : none
        kind_ = (layer_types[$i] | ($i > 0 && $i % 2 == 0 ? 'attention' : 'conv'))
        mixer = $kind_ == 'conv' ? 'convolution' : 'attention'
        block = use_sandwich_norm ? 'sandwich' : 'pre_norm'; window = $window_)"},
      {"recurrent_gemma", "RecurrentGemma", "gemma", R"(
        qkv_bias = attention_bias; output_bias = true; mlp_bias = true; intermediate = intermediate_size / 2
        recurrence_channels = lru_width | $hidden; short_kernel = conv1d_width; positions = attention_window_size
        mixer = block_types[$i % size(block_types)] == 'recurrent' ? 'recurrence' : 'attention'
        block_types := ["recurrent", "recurrent", "attention"])"},
  };
}

}  // namespace turnpoint::huggingface
