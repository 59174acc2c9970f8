// SPDX-License-Identifier: Apache-2.0
// Keys and values through a bottleneck, with and without an indexer: DeepSeek-V2 and after it.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyRow> latent_rows() {
  return {
      {"deepseek_v2", "DeepseekV2", "-deepseek", R"(
        kv_heads = $heads; head_channels = qk_nope_head_dim; rotary_channels = qk_rope_head_dim
        latent_value_channels = v_head_dim; key_value_rank = kv_lora_rank; query_rank = q_lora_rank
        expert_intermediate = moe_intermediate_size)"},
      {"deepseek_v3", "DeepseekV3", "deepseek_v2", R"(
        router_bias = true; first_k_dense_replace := 3
        note: num_nextn_predict_layers != 0 && has(num_nextn_predict_layers): num_nextn_predict_layers is not modelled: the layers for predicting further tokens are left out)"},
      {"kimi_k2", "KimiK2", "deepseek_v3", ""},
      {"axk1", "AXK1", "deepseek_v2", "first_ = first_k_dense_replace | 1"},
      {"glm4_moe_lite", "Glm4MoeLite", "deepseek_v2", "first_ = first_k_dense_replace | 1"},
      {"deepseek_v32", "DeepseekV32", "deepseek_v2", R"(
        index_heads = index_n_heads; index_channels = index_head_dim; index_chosen = index_topk)"},
      {"glm_moe_dsa", "GlmMoeDsa", "deepseek_v32", "layer_indexed = (indexer_types[$i] | 'full') == 'full'"},
      // First layers are dense as the older key says, where no list of layers is given.
      {"axk2", "AXK2", "deepseek_v32", R"(
        first_ = first_k_dense_replace; gated_norm_rank = gated_norm_rank; query_both = true
        attention_gate = 'channel'; expert_groups = n_group; gated_norm_rank := 16
        refuse q_lora_rank: !(q_lora_rank > 0): must be above 0: the queries' bottleneck also makes the gate)"},
      {"hy_v4", "HYV4", "glm_moe_dsa", R"(
        sinks = true; attention_gate = 'channel'; first_ = 1
        layer_indexed = (indexer_types[$i] | ($i == 0 || ($i - 1) % 4 == 0 ? 'full' : 'shared')) == 'full'
        hc_mult := 4
        note: hc_mult > 1: one stream of states is modelled, not {hc_mult}: the parameters that mix them are left out, and what the others keep)"},
      {"minicpm3", "MiniCPM3", "deepseek_v2", R"(
        experts = none; sparse = false; shared_intermediate = none; mlp_bias = mlp_bias
        latent_value_channels = v_head_dim | ($hidden / $heads))"},
      {"youtu", "Youtu", "minicpm3", ""},
      // The checkpoints as DeepSeek publishes them, without model_type.
      {"-native_deepseek", "", "deepseek_v3", R"(
        hidden = dim; layers = n_layers; heads = n_heads; intermediate = inter_dim; positions = max_seq_len | 4096
        expert_intermediate = moe_inter_dim; experts_per_token = n_activated_experts; first_ = n_dense_layers
        head_channels = qk_nope_head_dim; expert_groups = n_expert_groups; tied = false; head = none
        index_heads = index_n_heads; index_channels = index_head_dim; index_chosen = index_topk)"},
      // params.json beside Meta's checkpoints: the MLP's width follows from three numbers.
      {"-native_llama", "", "-rotary", R"(
        hidden = dim; layers = n_layers; heads = n_heads; kv_heads = n_kv_heads | $heads
        raw_ = (8 * dim) / 3 * (ffn_dim_multiplier | 1)
        intermediate = hidden_dim | up($raw_ - $raw_ % 1, multiple_of | 256)
        positions = max_seq_len | 4096; vocabulary = vocab_size; tied = tied_embeddings | use_tied_embeddings
        head = none; vocab_size := 32000)"},
  };
}

}  // namespace turnpoint::huggingface
