// SPDX-License-Identifier: Apache-2.0
// What the transformers library (5.23) takes for keys that a config leaves out, where it differs from the row above.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyDefaults> defaults_1() {
  return {
      {"gpt2", R"(activation_function := "gelu_new"; add_cross_attention := false; n_embd := 768; n_head := 12
        n_layer := 12; n_positions := 1024; tie_word_embeddings := true; vocab_size := 50257)"},
      {"openai-gpt", R"(afn := "gelu"; n_positions := 512; vocab_size := 40478; add_cross_attention := null)"},
      {"gpt_bigcode", R"(activation_function := "gelu_pytorch_tanh"; multi_query := true)"},
      {"biogpt", R"(hidden_act := "gelu"; hidden_size := 1024; intermediate_size := 4096
        max_position_embeddings := 1024; num_attention_heads := 16; num_hidden_layers := 24
        tie_word_embeddings := true; vocab_size := 42384)"},
      {"xglm", R"(activation_function := "gelu"; add_cross_attention := false; attention_heads := 16
        d_model := 1024; ffn_dim := 4096; max_position_embeddings := 2048; num_layers := 24
        tie_word_embeddings := true; vocab_size := 256008)"},
      {"gptj", R"(activation_function := "gelu_new"; n_embd := 4096; n_head := 16; n_layer := 28
        n_positions := 2048; tie_word_embeddings := false; vocab_size := 50400)"},
      {"codegen", R"(n_ctx := 2048)"},
      {"ctrl", R"(dff := 8192; n_embd := 1280; n_head := 16; n_layer := 48; n_positions := 256
        tie_word_embeddings := true; vocab_size := 246534)"},
      {"gpt_neox", R"(attention_bias := true; hidden_act := "gelu"; hidden_size := 6144; intermediate_size := 24576
        max_position_embeddings := 2048; num_attention_heads := 64; num_hidden_layers := 44
        tie_word_embeddings := false; use_parallel_residual := true; vocab_size := 50432)"},
      {"gpt_neox_japanese", R"(hidden_size := 2560; intermediate_multiple_size := 4; num_attention_heads := 32
        num_hidden_layers := 32; tie_word_embeddings := true; vocab_size := 32000)"},
      {"bloom", R"(hidden_size := 64; n_head := 8; n_layer := 2; tie_word_embeddings := true; vocab_size := 250880)"},
      {"falcon", R"(activation := "gelu"; bias := false; hidden_size := 4544; max_position_embeddings := 2048
        multi_query := true; new_decoder_architecture := false; num_attention_heads := 71
        num_hidden_layers := 32; parallel_attn := true; tie_word_embeddings := true
        vocab_size := 65024)"},
      {"mpt", R"(attn_config.attn_type := "multihead_attention"; attn_config.qk_ln := false; d_model := 2048
        expansion_ratio := 4; max_seq_len := 2048; n_heads := 16; n_layers := 24; no_bias := true
        tie_word_embeddings := true; vocab_size := 50368)"},
      {"opt", R"(activation_function := "relu"; do_layer_norm_before := true; enable_bias := true
        ffn_dim := 3072; hidden_size := 768; layer_norm_elementwise_affine := true
        max_position_embeddings := 2048; num_attention_heads := 12; num_hidden_layers := 12
        tie_word_embeddings := true; vocab_size := 50272)"},
      {"phi", R"(hidden_act := "gelu_new"; hidden_size := 2048; intermediate_size := 8192
        max_position_embeddings := 2048; num_attention_heads := 32; num_hidden_layers := 24
        qk_layernorm := false; tie_word_embeddings := false; vocab_size := 51200)"},
      {"persimmon", R"(hidden_act := "relu2"; hidden_size := 4096; intermediate_size := 16384
        max_position_embeddings := 16384; num_attention_heads := 64; num_hidden_layers := 36
        qk_layernorm := true; tie_word_embeddings := false; vocab_size := 262144)"},
      {"gpt_neo", R"(activation_function := "gelu_new"; hidden_size := 2048; max_position_embeddings := 2048
        num_heads := 16; num_layers := 24; tie_word_embeddings := true; vocab_size := 50257
        window_size := 256)"},
      {"starcoder2", R"(hidden_act := "gelu_pytorch_tanh"; hidden_size := 3072; intermediate_size := 12288
        max_position_embeddings := 4096; num_attention_heads := 24; num_hidden_layers := 30
        num_key_value_heads := 2; tie_word_embeddings := true; use_bias := true; vocab_size := 49152)"},
      {"cohere", R"(attention_bias := false; hidden_act := "silu"; hidden_size := 8192; intermediate_size := 22528
        max_position_embeddings := 8192; num_attention_heads := 64; num_hidden_layers := 40
        tie_word_embeddings := true; use_qk_norm := false; vocab_size := 256000)"},
      {"cohere2", R"(head_dim := 128; sliding_window := 4096)"},
      {"jais2", R"(attention_bias := true; hidden_act := "relu2"; hidden_size := 3328; intermediate_size := 26624
        max_position_embeddings := 8192; mlp_bias := true; num_attention_heads := 26
        num_hidden_layers := 32; tie_word_embeddings := false; vocab_size := 150272)"},
      {"llama", R"(attention_bias := false; hidden_size := 4096; intermediate_size := 11008
        max_position_embeddings := 2048; mlp_bias := false; num_attention_heads := 32
        num_hidden_layers := 32; tie_word_embeddings := false; vocab_size := 32000)"},
      {"arcee", R"(hidden_act := "relu2"; hidden_size := 2560; intermediate_size := 18432
        max_position_embeddings := 4096)"},
      {"helium", R"(head_dim := 128; hidden_size := 2560; intermediate_size := 7040
        max_position_embeddings := 4096; num_attention_heads := 20; num_hidden_layers := 24
        num_key_value_heads := 20; vocab_size := 48000)"},
      {"internlm3", R"(head_dim := 128; intermediate_size := 10240; max_position_embeddings := 32768
        num_hidden_layers := 48; num_key_value_heads := 2; vocab_size := 128512)"},
      {"iquestcoder", R"(head_dim := 128; hidden_size := 5120; intermediate_size := 27648
        max_position_embeddings := 131072; num_attention_heads := 40; num_hidden_layers := 80
        num_key_value_heads := 8; vocab_size := 76800)"},
      {"smollm3", R"(hidden_size := 2048; max_position_embeddings := 32768; num_attention_heads := 16
        num_hidden_layers := 36; num_key_value_heads := 4; tie_word_embeddings := true
        use_sliding_window := false; vocab_size := 128256)"},
      {"cwm", R"(head_dim := 128; hidden_size := 6144; intermediate_size := 21504
        max_position_embeddings := 131072; num_attention_heads := 48; num_hidden_layers := 64
        num_key_value_heads := 8; sliding_window := 8192; vocab_size := 128256)"},
      {"seed_oss", R"(attention_bias := true; attention_out_bias := false; head_dim := 128
        intermediate_size := 27648; max_position_embeddings := 524288; num_attention_heads := 80
        num_hidden_layers := 64; num_key_value_heads := 8; vocab_size := 155136)"},
      {"granite_swa", R"(hidden_size := 2560; intermediate_size := 8192; max_position_embeddings := 8192
        num_attention_heads := 20; num_hidden_layers := 24; num_key_value_heads := 4
        sliding_window := 128; tie_word_embeddings := true; vocab_size := 100352)"},
      {"granite_docling_text", R"(hidden_size := 1024; intermediate_size := 2048; max_position_embeddings := 32768
        num_attention_heads := 16; num_hidden_layers := 28; num_key_value_heads := 4
        tie_word_embeddings := true; vocab_size := 133800)"},
      {"hyperclovax", R"(use_post_norm := true)"},
      {"ernie4_5", R"(head_dim := 128; hidden_size := 1024; intermediate_size := 3072
        max_position_embeddings := 131072; num_attention_heads := 16; num_hidden_layers := 18
        num_key_value_heads := 2; tie_word_embeddings := true; use_bias := false; vocab_size := 103424)"},
      {"diffllama", R"(hidden_size := 2048; intermediate_size := 8192; num_hidden_layers := 16)"},
      {"bitnet", R"(hidden_size := 2560; intermediate_size := 6912; num_attention_heads := 20
        num_hidden_layers := 30; num_key_value_heads := 5; vocab_size := 128256)"},
      {"apertus", R"(intermediate_size := 14336; max_position_embeddings := 65536; vocab_size := 131072)"},
      {"nanochat", R"(hidden_act := "relu2"; hidden_size := 768; intermediate_size := 8192; num_attention_heads := 6
        num_hidden_layers := 12; vocab_size := 50304)"},
      {"mistral", R"(hidden_size := 4096; intermediate_size := 14336; max_position_embeddings := 131072
        num_attention_heads := 32; num_hidden_layers := 32; num_key_value_heads := 8
        sliding_window := 4096; tie_word_embeddings := false; vocab_size := 32000)"},
      {"ministral3", R"(head_dim := 128; max_position_embeddings := 262144; num_hidden_layers := 34
        vocab_size := 131072; sliding_window := null)"},
      {"qwen2", R"(hidden_size := 4096; intermediate_size := 22016; max_position_embeddings := 32768
        num_attention_heads := 32; num_hidden_layers := 32; num_key_value_heads := 32
        tie_word_embeddings := false; vocab_size := 151936)"},
      {"qwen2_vl_text", R"(hidden_size := 8192; intermediate_size := 29568; num_attention_heads := 64
        num_hidden_layers := 80; num_key_value_heads := 8; vocab_size := 152064)"},
      {"qwen2_5_vl_text", R"(hidden_size := 8192; intermediate_size := 29568; num_attention_heads := 64
        num_hidden_layers := 80; num_key_value_heads := 8; vocab_size := 152064)"},
      {"qwen3", R"(head_dim := 128; intermediate_size := 22016; max_position_embeddings := 32768
        num_key_value_heads := 32; vocab_size := 151936)"},
      {"qwen3_vl_text", R"(max_position_embeddings := 128000; use_sliding_window := null)"},
      {"gemma", R"(head_dim := 256; hidden_act := "gelu_pytorch_tanh"; hidden_size := 3072
        intermediate_size := 24576; max_position_embeddings := 8192; num_attention_heads := 16
        num_hidden_layers := 28; num_key_value_heads := 16; tie_word_embeddings := true
        vocab_size := 256000)"},
      {"gemma2", R"(hidden_activation := "gelu_pytorch_tanh"; hidden_size := 2304; intermediate_size := 9216
        num_attention_heads := 8; num_hidden_layers := 26; num_key_value_heads := 4
        sliding_window := 4096; hidden_act := null)"},
      {"gemma3_text", R"(max_position_embeddings := 131072; vocab_size := 262208)"},
      {"vaultgemma", R"(hidden_activation := "gelu_pytorch_tanh"; hidden_size := 2304; intermediate_size := 9216
        num_attention_heads := 8; num_hidden_layers := 26; num_key_value_heads := 4
        sliding_window := 4096; hidden_act := null)"},
      {"phi3", R"(hidden_size := 3072; intermediate_size := 8192; max_position_embeddings := 4096
        num_attention_heads := 32; num_hidden_layers := 32; tie_word_embeddings := false
        vocab_size := 32064)"},
      {"olmo", R"(vocab_size := 50304)"},
      {"olmo2", R"(vocab_size := 50304)"},
      {"olmo3", R"(sliding_window := 4096)"},
      {"exaone4", R"(hidden_size := 4096; intermediate_size := 16384; max_position_embeddings := 2048
        num_attention_heads := 32; num_hidden_layers := 32; num_key_value_heads := 32
        sliding_window := 4096; tie_word_embeddings := false; vocab_size := 102400)"},
      {"stablelm", R"(hidden_size := 2560; intermediate_size := 6912; max_position_embeddings := 4096
        num_attention_heads := 32; num_hidden_layers := 32; num_key_value_heads := 32
        qk_layernorm := false; tie_word_embeddings := false; use_parallel_residual := false
        use_qkv_bias := false; vocab_size := 50304)"},
      {"glm", R"(attention_bias := true; head_dim := 128; hidden_size := 4096; intermediate_size := 13696
        max_position_embeddings := 131072; num_attention_heads := 32; num_hidden_layers := 40
        num_key_value_heads := 2; tie_word_embeddings := false; vocab_size := 151552)"},
      {"glm4v_text", R"(max_position_embeddings := 32768; head_dim := null)"},
      {"glm_ocr_text", R"(hidden_size := 1024; intermediate_size := 4096; num_attention_heads := 16
        num_hidden_layers := 16; num_key_value_heads := 8; vocab_size := 59392; head_dim := null)"},
      {"glm_image_text", R"(vocab_size := 168064; head_dim := null)"},
      {"moshi", R"(ffn_dim := 22528; hidden_size := 4096; max_position_embeddings := 3000
        num_attention_heads := 32; num_hidden_layers := 32; sliding_window := 3000
        tie_word_embeddings := false; vocab_size := 32000)"},
      {"mixtral", R"(hidden_size := 4096; intermediate_size := 14336; max_position_embeddings := 131072
        num_attention_heads := 32; num_experts_per_tok := 2; num_hidden_layers := 32
        num_key_value_heads := 8; num_local_experts := 8; tie_word_embeddings := false
        vocab_size := 32000)"},
      {"minimax_m2", R"(head_dim := 128; hidden_size := 3072; intermediate_size := 1536
        max_position_embeddings := 196608; num_attention_heads := 48; num_experts_per_tok := 8
        num_hidden_layers := 62; num_local_experts := 256; vocab_size := 200064)"},
      {"phimoe", R"(attention_bias := false; intermediate_size := 6400; lm_head_bias := false
        num_local_experts := 16; vocab_size := 32064)"},
      {"gpt_oss", R"(attention_bias := true; head_dim := 64; hidden_size := 2880; intermediate_size := 2880
        num_attention_heads := 64; num_experts_per_tok := 4; num_hidden_layers := 36
        num_local_experts := 128; sliding_window := 128; vocab_size := 201088)"},
      {"openai_privacy_filter", R"(hidden_size := 640; intermediate_size := 640; num_attention_heads := 14; num_hidden_layers := 8
        num_key_value_heads := 2; vocab_size := 200064)"},
      {"granitemoe", R"(attention_bias := false; intermediate_size := 11008; max_position_embeddings := 2048
        num_key_value_heads := null)"},
      {"granitemoeshared", R"(shared_intermediate_size := 0)"},
      {"granitemoe_swa", R"(sliding_window := 128)"},
      {"flex_olmo", R"(attention_bias := false; hidden_size := 4096; intermediate_size := 11008
        max_position_embeddings := 4096; num_attention_heads := 32; num_experts := 7
        num_experts_per_tok := 5; num_hidden_layers := 32; tie_word_embeddings := false
        vocab_size := 100352)"},
      {"olmoe", R"(hidden_size := 2048; intermediate_size := 2048; num_attention_heads := 16; num_experts := 64
        num_experts_per_tok := 8; num_hidden_layers := 16; vocab_size := 50304)"},
      {"aria_text", R"(attention_bias := false; hidden_size := 4096; intermediate_size := 4096
        max_position_embeddings := 2048; mlp_bias := false; moe_num_experts := 8
        moe_num_shared_experts := 2; moe_topk := 2; num_attention_heads := 32; num_hidden_layers := 32
        tie_word_embeddings := false; vocab_size := 32000)"},
      {"qwen2_moe", R"(decoder_sparse_step := 1; hidden_size := 2048; intermediate_size := 5632
        max_position_embeddings := 32768; moe_intermediate_size := 1408; num_attention_heads := 16
        num_experts := 60; num_experts_per_tok := 4; num_hidden_layers := 24; num_key_value_heads := 16
        shared_expert_intermediate_size := 5632; sliding_window := 0; tie_word_embeddings := false
        vocab_size := 151936)"},
      {"qwen3_moe", R"(attention_bias := false; intermediate_size := 6144; moe_intermediate_size := 768
        num_attention_heads := 32; num_experts_per_tok := 8; num_key_value_heads := 4
        num_local_experts := 128; num_experts := null; sliding_window := null)"},
      {"qwen3_vl_moe_text", R"(intermediate_size := 5632; max_position_embeddings := 128000; moe_intermediate_size := 1408
        num_attention_heads := 16; num_experts_per_tok := 4; num_key_value_heads := 16
        num_local_experts := 60; tie_word_embeddings := true; use_sliding_window := null)"},
      {"flint", R"(head_dim := 128; max_position_embeddings := 262144; moe_intermediate_size := 512
        num_experts := 256; num_experts_per_tok := 6; num_hidden_layers := 49
        shared_expert_intermediate_size := 1024; sliding_window := 513; vocab_size := 150144
        num_local_experts := null)"},
      {"mellum", R"(attention_bias := false; head_dim := 128; hidden_size := 2304; intermediate_size := 7168
        max_position_embeddings := 131072; moe_intermediate_size := 896; num_attention_heads := 32
        num_experts_per_tok := 8; num_hidden_layers := 28; num_key_value_heads := 4
        num_local_experts := 64; sliding_window := 1024; tie_word_embeddings := false
        vocab_size := 98304)"},
      {"kolibri1", R"(head_dim := 128; hidden_size := 2560; max_position_embeddings := 262144
        moe_intermediate_size := 512; num_attention_heads := 48; num_experts_per_tok := 6
        num_hidden_layers := 50; num_key_value_heads := 4; num_local_experts := 384
        shared_expert_intermediate_size := 512; sliding_window := 513; tie_word_embeddings := false
        vocab_size := 128000)"},
      {"laguna", R"(attention_bias := false; gating := true; head_dim := 128; hidden_size := 2048
        intermediate_size := 8192; max_position_embeddings := 131072; moe_intermediate_size := 512
        num_attention_heads := 48; num_experts := 256; num_experts_per_tok := 8
        num_hidden_layers := 40; num_key_value_heads := 8; shared_expert_intermediate_size := 512
        sliding_window := 512; tie_word_embeddings := false; vocab_size := 100352)"},
      {"beam", R"(attention_bias := false; head_dim := 128; hidden_size := 5120; intermediate_size := 20480
        max_position_embeddings := 8192; moe_intermediate_size := 2560; num_attention_heads := 48
        num_experts := 256; num_experts_per_tok := 8; num_hidden_layers := 52; num_key_value_heads := 8
        sliding_window := 512; tie_word_embeddings := false; vocab_size := 151936)"},
      {"hy_v3", R"(attention_bias := false; head_dim := 128; hidden_size := 4096; intermediate_size := 13312
        max_position_embeddings := 131072; moe_intermediate_size := 1536; num_attention_heads := 64
        num_experts := 192; num_experts_per_tok := 8; num_hidden_layers := 80; num_key_value_heads := 8
        num_shared_experts := 1; tie_word_embeddings := false; vocab_size := 120832)"},
      {"glm4_moe", R"(attention_bias := false; first_k_dense_replace := 1; hidden_size := 4096
        intermediate_size := 10944; max_position_embeddings := 131072; moe_intermediate_size := 1408
        n_group := 1; n_routed_experts := 128; n_shared_experts := 1; num_attention_heads := 96
        num_experts_per_tok := 8; num_hidden_layers := 46; num_key_value_heads := 8
        tie_word_embeddings := false; use_qk_norm := false; vocab_size := 151552)"},
      {"glm4v_moe_text", R"(attention_bias := true; max_position_embeddings := 65536; vocab_size := 151424)"},
      {"exaone_moe", R"(first_k_dense_replace := 1; hidden_size := 4096; intermediate_size := 16384
        max_position_embeddings := 2048; moe_intermediate_size := 1024; n_group := 1
        num_attention_heads := 32; num_experts := 64; num_experts_per_tok := 8; num_hidden_layers := 32
        num_key_value_heads := 32; num_shared_experts := 1; sliding_window := 4096
        tie_word_embeddings := false; vocab_size := 102400)"},
      {"solar_open", R"(attention_bias := false; head_dim := 128; hidden_size := 4096
        max_position_embeddings := 131072; moe_intermediate_size := 1280; n_group := 1
        n_routed_experts := 128; n_shared_experts := 1; num_attention_heads := 64
        num_experts_per_tok := 8; num_hidden_layers := 48; num_key_value_heads := 8
        tie_word_embeddings := false; vocab_size := 196608)"},
      {"afmoe", R"(head_dim := 128; hidden_size := 2048; intermediate_size := 6144
        max_position_embeddings := 16384; moe_intermediate_size := 1408; num_attention_heads := 16
        num_dense_layers := 1; num_experts := 64; num_experts_per_tok := 6; num_hidden_layers := 32
        num_shared_experts := 2; sliding_window := 1024; tie_word_embeddings := false
        vocab_size := 200192)"},
      {"ernie4_5_moe", R"(hidden_size := 2560; intermediate_size := 12288; max_position_embeddings := 131072
        moe_intermediate_size := 1536; moe_k := 6; moe_layer_end_index := 27; moe_layer_interval := 1
        moe_layer_start_index := 1; moe_num_experts := 64; moe_num_shared_experts := 2
        num_attention_heads := 20; num_hidden_layers := 28; num_key_value_heads := 4
        tie_word_embeddings := true; use_bias := false; vocab_size := 103424)"},
      {"cohere2_moe", R"(num_experts := 8; num_experts_per_tok := 2; num_shared_experts := 0)"},
      {"llama4_text", R"(attention_bias := false; head_dim := 128; hidden_size := 5120; interleave_moe_layer_step := 1
        intermediate_size := 8192; intermediate_size_mlp := 16384; max_position_embeddings := 131072
        num_attention_heads := 40; num_experts_per_tok := 1; num_hidden_layers := 48
        num_key_value_heads := 8; num_local_experts := 16; tie_word_embeddings := false
        use_qk_norm := true; vocab_size := 202048)"},
      {"minimax_m3_vl_text", R"(dense_intermediate_size := 12288; head_dim := 128; hidden_size := 6144
        intermediate_size := 3072; max_position_embeddings := 524288; num_attention_heads := 64
        num_experts_per_tok := 4; num_hidden_layers := 60; num_key_value_heads := 4
        num_local_experts := 128; shared_intermediate_size := 3072; tie_word_embeddings := false
        vocab_size := 200064)"},
      {"mimo_v2_flash", R"(attention_bias := false; head_dim := 192; hidden_size := 4096; intermediate_size := 16384
        max_position_embeddings := 131072; moe_intermediate_size := 2048; n_group := 1
        n_routed_experts := 256; num_attention_heads := 64; num_experts_per_tok := 8
        num_hidden_layers := 48; num_key_value_heads := 4; sliding_window := 129
        tie_word_embeddings := false; v_head_dim := 128; vocab_size := 152576)"},
      {"deepseek_v2", R"(attention_bias := false; first_k_dense_replace := 0; hidden_size := 4096
        intermediate_size := 11008; kv_lora_rank := 512; max_position_embeddings := 2048
        moe_intermediate_size := 1407; n_routed_experts := 64; n_shared_experts := 2
        num_attention_heads := 32; num_hidden_layers := 32; q_lora_rank := 1536
        qk_nope_head_dim := 128; qk_rope_head_dim := 64; tie_word_embeddings := false
        v_head_dim := 128; vocab_size := 102400)"},
      {"deepseek_v3", R"(hidden_size := 7168; intermediate_size := 18432; max_position_embeddings := 4096
        moe_intermediate_size := 2048; n_group := 8; n_routed_experts := 256; n_shared_experts := 1
        num_attention_heads := 128; num_experts_per_tok := 8; num_hidden_layers := 61
        vocab_size := 129280)"},
      {"axk1", R"(hidden_size := 7168; intermediate_size := 18432; max_position_embeddings := 32768
        moe_intermediate_size := 2048; n_group := 8; n_routed_experts := 192; n_shared_experts := 1
        num_attention_heads := 64; num_experts_per_tok := 8; num_hidden_layers := 61
        vocab_size := 163840; first_k_dense_replace := null)"},
      {"glm4_moe_lite", R"(hidden_size := 2048; intermediate_size := 10240; max_position_embeddings := 202752
        moe_intermediate_size := 1536; n_group := 1; n_shared_experts := 1; num_attention_heads := 20
        num_experts_per_tok := 4; num_hidden_layers := 47; q_lora_rank := 768; qk_nope_head_dim := 192
        v_head_dim := 256; vocab_size := 154880; first_k_dense_replace := null)"},
      {"deepseek_v32", R"(first_k_dense_replace := 3; hidden_size := 7168; index_head_dim := 128; index_n_heads := 64
        index_topk := 2048; intermediate_size := 18432; max_position_embeddings := 163840
        moe_intermediate_size := 2048; n_group := 8; n_routed_experts := 256; n_shared_experts := 1
        num_attention_heads := 128; num_experts_per_tok := 8; num_hidden_layers := 61
        vocab_size := 129280)"},
      {"glm_moe_dsa", R"(hidden_size := 6144; index_n_heads := 32; intermediate_size := 12288
        max_position_embeddings := 202752; n_group := 1; num_attention_heads := 64
        num_hidden_layers := 78; q_lora_rank := 2048; qk_nope_head_dim := 192; v_head_dim := 256
        vocab_size := 154880)"},
      {"hy_v4", R"(hidden_size := 2816; index_n_heads := 16; intermediate_size := 6912
        max_position_embeddings := 262144; moe_intermediate_size := 768; num_attention_heads := 32
        num_hidden_layers := 34; q_lora_rank := 1536; vocab_size := 120832
        first_k_dense_replace := null)"},
      {"minicpm3", R"(hidden_size := 2560; intermediate_size := 6400; kv_lora_rank := 256
        max_position_embeddings := 32768; mlp_bias := false; num_attention_heads := 40
        num_hidden_layers := 62; q_lora_rank := 768; qk_nope_head_dim := 64; qk_rope_head_dim := 32
        tie_word_embeddings := true; vocab_size := 73448; n_shared_experts := null
        moe_intermediate_size := null; v_head_dim := null; first_k_dense_replace := null)"},
      {"youtu", R"(hidden_size := 2048; intermediate_size := 6144; kv_lora_rank := 512
        max_position_embeddings := 131072; num_attention_heads := 16; num_hidden_layers := 32
        q_lora_rank := 1536; qk_nope_head_dim := 128; qk_rope_head_dim := 64; v_head_dim := 128
        vocab_size := 128256; mlp_bias := null)"},
      {"mamba", R"(conv_kernel := 4; expand := 2; hidden_size := 768; intermediate_size := 1536
        num_hidden_layers := 32; state_size := 16; tie_word_embeddings := true; use_bias := false
        use_conv_bias := true; vocab_size := 50280)"},
      {"mamba2", R"(chunk_size := 256; hidden_size := 4096; n_groups := 8; num_heads := 128
        num_hidden_layers := 64; state_size := 128; tie_word_embeddings := false; time_step_rank := 256
        vocab_size := 32768)"},
      {"bamba", R"(intermediate_size := 14336; mamba_chunk_size := 256; mamba_conv_bias := true; mamba_d_conv := 4
        mamba_d_state := 256; mamba_expand := 2; mamba_n_groups := 1; mamba_n_heads := 128
        mamba_proj_bias := false; max_position_embeddings := 262144; num_key_value_heads := 8
        vocab_size := 128000)"},
      {"falcon_h1", R"(intermediate_size := 14336; mamba_chunk_size := 256; mamba_conv_bias := true; mamba_d_conv := 4
        mamba_d_ssm := 1024; mamba_d_state := 256; mamba_expand := 2; mamba_n_groups := 1
        mamba_n_heads := 128; mamba_proj_bias := false; mamba_rms_norm := false
        max_position_embeddings := 8192; num_key_value_heads := 8; vocab_size := 128000)"},
      {"granitemoehybrid", R"(mamba_chunk_size := 256; mamba_conv_bias := true; mamba_d_conv := 4; mamba_d_state := 256
        mamba_expand := 2; mamba_n_groups := 1; mamba_n_heads := 128; mamba_proj_bias := false
        num_experts_per_tok := 2; num_local_experts := 8; shared_intermediate_size := 1024
        mlp_bias := null)"},
      {"jamba", R"(attn_layer_offset := 4; attn_layer_period := 8; expert_layer_offset := 1
        expert_layer_period := 2; hidden_size := 4096; intermediate_size := 14336
        mamba_conv_bias := true; mamba_d_conv := 4; mamba_d_state := 16; mamba_expand := 2
        mamba_proj_bias := false; max_position_embeddings := 262144; num_attention_heads := 32
        num_experts := 16; num_experts_per_tok := 2; num_hidden_layers := 32; num_key_value_heads := 8
        tie_word_embeddings := false; vocab_size := 65536)"},
      {"nemotron_h", R"(attention_bias := false; chunk_size := 128; conv_kernel := 4; head_dim := 128
        hidden_size := 4096; intermediate_size := 21504; mamba_head_dim := 64; mamba_num_heads := 128
        mamba_proj_bias := false; max_position_embeddings := 4096; mlp_bias := false
        mlp_hidden_act := "relu2"; moe_intermediate_size := 7688
        moe_shared_expert_intermediate_size := 7688; n_groups := 8; n_routed_experts := 8
        n_shared_experts := 1; num_attention_heads := 32; num_experts_per_tok := 2
        num_key_value_heads := 8; ssm_state_size := 128; tie_word_embeddings := false
        use_bias := false; use_conv_bias := true; vocab_size := 131072)"},
      {"qwen3_next", R"(head_dim := 256; intermediate_size := 5632; linear_conv_kernel_dim := 4
        linear_key_head_dim := 128; linear_num_key_heads := 16; linear_num_value_heads := 32
        linear_value_head_dim := 128; moe_intermediate_size := 512; num_attention_heads := 16
        num_experts := 512; num_experts_per_tok := 10; num_hidden_layers := 48
        num_key_value_heads := 2; shared_expert_intermediate_size := 512; num_local_experts := null
        use_sliding_window := null)"},
      {"qwen3_5_moe_text", R"(num_experts := 256; num_experts_per_tok := 8; num_hidden_layers := 40; vocab_size := 248320
        intermediate_size := null; decoder_sparse_step := null)"},
      {"qwen3_5_text", R"(hidden_size := 4096; intermediate_size := 12288; num_hidden_layers := 32
        num_key_value_heads := 4; vocab_size := 248320; moe_intermediate_size := null
        num_experts_per_tok := null)"},
      {"olmo_hybrid", R"(hidden_size := 3840; intermediate_size := 11008; max_position_embeddings := 65536
        num_attention_heads := 30; vocab_size := 100352; linear_value_head_dim := null
        head_dim := null; linear_key_head_dim := null; linear_num_key_heads := null
        num_key_value_heads := null; linear_num_value_heads := null)"},
      {"kimi_linear", R"(hidden_size := 2304; intermediate_size := 9216; linear_conv_kernel_dim := 4
        linear_head_dim := 128; linear_num_heads := 32; model_max_length := 1048576
        moe_intermediate_size := 1024; num_expert_group := 1; num_experts := 256
        num_experts_per_token := 8; num_hidden_layers := 27; num_shared_experts := 1
        vocab_size := 163840; n_shared_experts := null; max_position_embeddings := null
        n_routed_experts := null; q_lora_rank := null; first_k_dense_replace := null)"},
      {"bailing_hybrid", R"(first_k_dense_replace := 2; hidden_size := 2560; intermediate_size := 6144
        layer_group_size := 6; model_max_length := 262144; moe_intermediate_size := 768
        num_expert_group := 8; num_experts := 512; num_hidden_layers := 42; vocab_size := 157184)"},
      {"lfm2", R"(block_auto_adjust_ff_dim := true; block_ffn_dim_multiplier := 1.0; block_multiple_of := 256
        conv_L_cache := 3; conv_bias := false; hidden_size := 2560; intermediate_size := 12288
        max_position_embeddings := 128000; num_attention_heads := 32; num_hidden_layers := 32
        num_key_value_heads := 8; tie_word_embeddings := true; vocab_size := 65536; hidden_act := null)"},
      {"lfm3", R"(conv_L_cache := 7; head_dim := 128; hidden_size := 2048; intermediate_size := 7680
        num_attention_heads := 16; num_hidden_layers := 24; num_key_value_heads := 4
        sliding_window := 256; use_attention_gate := true; use_sandwich_norm := true
        vocab_size := 128000; block_ffn_dim_multiplier := null; block_auto_adjust_ff_dim := null
        block_multiple_of := null)"},
      {"recurrent_gemma", R"(attention_window_size := 2048; conv1d_width := 4; hidden_activation := "gelu_pytorch_tanh"
        hidden_size := 2560; intermediate_size := 7680; num_attention_heads := 10
        num_hidden_layers := 26; hidden_act := null; num_key_value_heads := null)"},
      {"bert", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 512; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 30522)"},
      {"ernie", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 512; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 30522)"},
      {"dpr", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 512; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 30522)"},
      {"megatron-bert", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 1024
        intermediate_size := 4096; max_position_embeddings := 512; num_attention_heads := 16
        num_hidden_layers := 24; type_vocab_size := 2; vocab_size := 29056)"},
      {"bert-generation", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 1024
        intermediate_size := 4096; max_position_embeddings := 512; num_attention_heads := 16
        num_hidden_layers := 24; vocab_size := 50358)"},
      {"big_bird", R"(add_cross_attention := false; hidden_act := "gelu_new"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 4096; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; use_bias := true; vocab_size := 50358)"},
      {"layoutlm", R"(hidden_act := "gelu"; hidden_size := 768; intermediate_size := 3072
        max_2d_position_embeddings := 1024; max_position_embeddings := 512; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 30522)"},
      {"mra", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 512; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 1; vocab_size := 50265)"},
      {"yoso", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 4096; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 1; vocab_size := 50265)"},
      {"tapas", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 1024; num_attention_heads := 12
        num_hidden_layers := 12; vocab_size := 30522)"},
      {"convbert", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 512; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 30522)"},
      {"nystromformer", R"(add_cross_attention := false; hidden_act := "gelu_new"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 510; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 30000)"},
      {"rembert", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 1152
        input_embedding_size := 256; intermediate_size := 4608; max_position_embeddings := 512
        num_attention_heads := 18; num_hidden_layers := 32; output_embedding_size := 1664
        type_vocab_size := 2; vocab_size := 250300)"},
      {"roberta", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 512; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 50265)"},
      {"camembert", R"(vocab_size := 30522)"},
      {"ibert", R"(vocab_size := 30522; add_cross_attention := null)"},
      {"mpnet", R"(vocab_size := 30527; add_cross_attention := null)"},
      {"jina_embeddings_v3", R"(hidden_act := "gelu"; hidden_size := 1024; intermediate_size := 4096
        max_position_embeddings := 8194; num_attention_heads := 16; num_hidden_layers := 24
        type_vocab_size := 1; vocab_size := 250002)"},
      {"gte", R"(hidden_act := "gelu"; hidden_size := 768; intermediate_size := 3072
        max_position_embeddings := 8192; num_attention_heads := 12; num_hidden_layers := 12
        type_vocab_size := 1; vocab_size := 250048)"},
      {"nomic_bert", R"(hidden_act := "silu"; max_position_embeddings := 2048; type_vocab_size := 2
        vocab_size := 30528)"},
      {"xlm", R"(emb_dim := 2048; gelu_activation := true; max_position_embeddings := 512; n_heads := 16
        n_langs := 1; n_layers := 12; use_lang_emb := true; vocab_size := 30145)"},
      {"flaubert", R"(pre_norm := false)"},
      {"xlm-roberta", R"(vocab_size := 30522)"},
      {"data2vec-text", R"(vocab_size := 30522)"},
      {"xlm-roberta-xl", R"(hidden_size := 2560; intermediate_size := 10240; max_position_embeddings := 514
        num_attention_heads := 32; num_hidden_layers := 36; type_vocab_size := 1; vocab_size := 250880)"},
      {"roformer", R"(add_cross_attention := false; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_position_embeddings := 1536; num_attention_heads := 12
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 50000)"},
      {"distilbert", R"(activation := "gelu"; dim := 768; hidden_dim := 3072; max_position_embeddings := 512
        n_heads := 12; n_layers := 6; vocab_size := 30522)"},
      {"albert", R"(embedding_size := 128; hidden_act := "gelu_new"; hidden_size := 4096; inner_group_num := 1
        intermediate_size := 16384; max_position_embeddings := 512; num_attention_heads := 64
        num_hidden_groups := 1; num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 30000)"},
      {"electra", R"(add_cross_attention := false; embedding_size := 128; hidden_act := "gelu"; hidden_size := 256
        intermediate_size := 1024; max_position_embeddings := 512; num_attention_heads := 4
        num_hidden_layers := 12; type_vocab_size := 2; vocab_size := 30522)"},
      {"deberta-v2", R"(hidden_act := "gelu"; hidden_size := 1536; intermediate_size := 6144
        max_position_embeddings := 512; max_relative_positions := -1; num_attention_heads := 24
        num_hidden_layers := 24; relative_attention := false; type_vocab_size := 0
        vocab_size := 128100)"},
      {"modernbert", R"(attention_bias := false; classifier_bias := false; decoder_bias := true
        hidden_activation := "gelu"; hidden_size := 768; intermediate_size := 1152
        max_position_embeddings := 8192; mlp_bias := false; norm_bias := false
        num_attention_heads := 12; num_hidden_layers := 22; vocab_size := 50368)"},
      {"eurobert", R"(hidden_size := 768; intermediate_size := 3072; max_position_embeddings := 8192
        num_attention_heads := 12; num_hidden_layers := 12; vocab_size := 128256)"},
      {"esmc", R"(hidden_size := 2560; intermediate_size := 6912; num_attention_heads := 40
        num_hidden_layers := 80; vocab_size := 64)"},
      {"modernbert-decoder", R"(sliding_window := 64)"},
      {"bart", R"(activation_function := "gelu"; d_model := 1024; decoder_attention_heads := 16
        decoder_ffn_dim := 4096; decoder_layers := 12; encoder_attention_heads := 16
        encoder_ffn_dim := 4096; encoder_layers := 12; max_position_embeddings := 1024
        tie_word_embeddings := true; vocab_size := 50265)"},
      {"plbart", R"(d_model := 768; decoder_attention_heads := 12; decoder_ffn_dim := 3072; decoder_layers := 6
        encoder_attention_heads := 12; encoder_ffn_dim := 3072; encoder_layers := 6
        vocab_size := 50005)"},
      {"mvp", R"(vocab_size := 50267)"},
      {"trocr", R"(layernorm_embedding := true; max_position_embeddings := 512
        use_learned_position_embeddings := true; encoder_attention_heads := null
        encoder_ffn_dim := null)"},
      {"blenderbot", R"(d_model := 2560; decoder_attention_heads := 32; decoder_ffn_dim := 10240; decoder_layers := 24
        encoder_attention_heads := 32; encoder_ffn_dim := 10240; encoder_layers := 2
        max_position_embeddings := 128; vocab_size := 8008)"},
      {"blenderbot-small", R"(d_model := 512; decoder_ffn_dim := 2048; decoder_layers := 8; encoder_ffn_dim := 2048
        encoder_layers := 8; max_position_embeddings := 512)"},
      {"marian", R"(d_model := 1024; decoder_ffn_dim := 4096; decoder_layers := 12; encoder_ffn_dim := 4096
        encoder_layers := 12; max_position_embeddings := 1024; vocab_size := 58101)"},
      {"bigbird_pegasus", R"(activation_function := "gelu_new"; decoder_layers := 16; encoder_layers := 16
        max_position_embeddings := 4096; use_bias := false; vocab_size := 96103)"},
      {"m2m_100", R"(activation_function := "relu"; vocab_size := 128112)"},
  };
}

}  // namespace turnpoint::huggingface
