// SPDX-License-Identifier: Apache-2.0
// What the transformers library (5.23) takes for keys that a config leaves out, where it differs from the row above.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyDefaults> defaults_2() {
  return {
      {"led", R"(max_position_embeddings := null)"},
      {"fnet", R"(hidden_act := "gelu_new"; hidden_size := 768; intermediate_size := 3072; max_position_embeddings := 512
        num_hidden_layers := 12; vocab_size := 32000)"},
      {"rwkv", R"(context_length := 1024; hidden_size := 4096; num_hidden_layers := 32; vocab_size := 50277)"},
      {"zamba", R"(attn_layer_offset := 4; attn_layer_period := 6; hidden_size := 3712; intermediate_size := 14848
        max_position_embeddings := 4096; num_attention_heads := 16; num_hidden_layers := 76; vocab_size := 32000)"},
      {"zamba2", R"(hidden_size := 2560; intermediate_size := 10240; num_attention_heads := 32; num_hidden_layers := 54)"},
      {"t5gemma", R"(decoder.hidden_size := 2304; decoder.intermediate_size := 9216; decoder.num_hidden_layers := 26
        decoder.num_attention_heads := 8; decoder.num_key_value_heads := 4; decoder.head_dim := 256
        decoder.max_position_embeddings := 8192; decoder.hidden_activation := "gelu_pytorch_tanh"
        decoder.vocab_size := 256000; encoder.hidden_size := 2304; encoder.intermediate_size := 9216
        encoder.num_hidden_layers := 26; encoder.num_attention_heads := 8; encoder.num_key_value_heads := 4
        encoder.head_dim := 256; decoder.sliding_window := 4096; vocab_size := null)"},
      {"fsmt", R"(activation_function := "relu"; src_vocab_size := 42024; tgt_vocab_size := 42024
        tie_word_embeddings := false)"},
      {"pegasus_x", R"(activation_function := "gelu"; decoder_layers := 16; encoder_layers := 16
        max_position_embeddings := 16384; vocab_size := 96103)"},
      {"whisper", R"(activation_function := "gelu"; decoder_attention_heads := 6; decoder_ffn_dim := 1536
        decoder_layers := 4; encoder_attention_heads := 6; encoder_ffn_dim := 1536; encoder_layers := 4
        max_source_positions := 1500; max_target_positions := 448; num_mel_bins := 80
        vocab_size := 51865)"},
      {"t5", R"(d_ff := 2048; d_kv := 64; d_model := 512; feed_forward_proj := "relu"; num_heads := 8
        num_layers := 6; relative_attention_num_buckets := 32; tie_word_embeddings := true
        vocab_size := 32128)"},
      {"mt5", R"(d_ff := 1024; feed_forward_proj := "gated-gelu"; num_heads := 6; num_layers := 8
        vocab_size := 250112)"},
      {"longt5", R"(encoder_attention_type := "local")"},
      {"umt5", R"(d_ff := 1024; feed_forward_proj := "gated-gelu"; num_heads := 6; num_layers := 8
        vocab_size := 250112)"},
      {"switch_transformers", R"(d_model := 768; num_decoder_layers := 12; num_experts := 8; num_heads := 12; num_layers := 12
        num_sparse_decoder_layers := 3; num_sparse_encoder_layers := 3; feed_forward_proj := null)"},
      {"vit", R"(hidden_act := "gelu"; hidden_size := 768; image_size := 224; intermediate_size := 3072
        num_attention_heads := 12; num_channels := 3; num_hidden_layers := 12; patch_size := 16)"},
      {"vit_msn", R"(hidden_act := "gelu"; hidden_size := 768; image_size := 224; intermediate_size := 3072
        num_attention_heads := 12; num_channels := 3; num_hidden_layers := 12; patch_size := 16)"},
      {"ijepa", R"(hidden_act := "gelu"; hidden_size := 768; image_size := 224; intermediate_size := 3072
        num_attention_heads := 12; num_channels := 3; num_hidden_layers := 12; patch_size := 16)"},
      {"deit", R"(hidden_act := "gelu"; hidden_size := 768; image_size := 224; intermediate_size := 3072
        num_attention_heads := 12; num_channels := 3; num_hidden_layers := 12; patch_size := 16)"},
      {"beit", R"(hidden_act := "gelu"; hidden_size := 768; image_size := 224; intermediate_size := 3072
        layer_scale_init_value := 0.1; num_attention_heads := 12; num_channels := 3
        num_hidden_layers := 12; patch_size := 16; use_absolute_position_embeddings := false
        use_relative_position_bias := false; use_shared_relative_position_bias := false
        qkv_bias := null)"},
      {"dinov2", R"(hidden_act := "gelu"; hidden_size := 768; image_size := 224; mlp_ratio := 4
        num_attention_heads := 12; num_channels := 3; num_hidden_layers := 12; patch_size := 14
        use_swiglu_ffn := false)"},
      {"dinov2_with_registers", R"(num_register_tokens := 4; patch_size := 16)"},
      {"dinov3_vit", R"(hidden_act := "gelu"; hidden_size := 384; image_size := 224; intermediate_size := 1536
        key_bias := false; mlp_bias := true; num_attention_heads := 6; num_channels := 3
        num_hidden_layers := 12; num_register_tokens := 0; patch_size := 16; proj_bias := true
        query_bias := true; use_gated_mlp := false)"},
      {"clip_vision_model", R"(hidden_act := "quick_gelu"; hidden_size := 768; image_size := 224; intermediate_size := 3072
        num_attention_heads := 12; num_channels := 3; num_hidden_layers := 12; patch_size := 32)"},
      {"siglip_vision_model", R"(hidden_act := "gelu_pytorch_tanh"; hidden_size := 768; image_size := 224
        intermediate_size := 3072; num_attention_heads := 12; num_channels := 3
        num_hidden_layers := 12; patch_size := 16; vision_use_head := true)"},
      {"siglip2_vision_model", R"(num_patches := 256)"},
      {"idefics3_vision", R"(hidden_size := 1152; num_attention_heads := 16; patch_size := 32)"},
      {"mlcd_vision_model", R"(hidden_act := "gelu"; hidden_size := 1664; image_size := 336; intermediate_size := 8192
        num_attention_heads := 16; num_hidden_layers := 48; patch_size := 14)"},
      {"audio-spectrogram-transformer", R"(frequency_stride := 10; hidden_act := "gelu"; hidden_size := 768
        intermediate_size := 3072; max_length := 1024; num_attention_heads := 12; num_hidden_layers := 12
        num_mel_bins := 128; patch_size := 16; time_stride := 10)"},
      {"pixtral", R"(hidden_act := "gelu"; hidden_size := 1024; image_size := 1024; intermediate_size := 4096
        num_attention_heads := 16; num_channels := 3; num_hidden_layers := 24; patch_size := 16)"},
      {"video_llama_3_vision", R"(hidden_size := 768; num_attention_heads := 12; patch_size := 16; image_size := null)"},
      {"glmasr_encoder", R"(hidden_act := "gelu"; hidden_size := 1280; intermediate_size := 5120
        max_position_embeddings := 1500; num_attention_heads := 20; num_hidden_layers := 32; num_mel_bins := 128)"},
      {"xlnet", R"(d_inner := 4096; d_model := 1024; ff_activation := "gelu"; n_head := 16; n_layer := 24
        tie_word_embeddings := true; vocab_size := 32000)"},
      {"clip_text_model", R"(hidden_act := "quick_gelu"; hidden_size := 512; intermediate_size := 2048
        max_position_embeddings := 77; num_attention_heads := 8; num_hidden_layers := 12; vocab_size := 49408)"},
      {"xlstm", R"(add_out_norm := true; chunk_size := 64; ffn_proj_factor := 2.667; hidden_size := 4096; num_heads := 8
        num_hidden_layers := 32; qk_dim_factor := 0.5; use_bias := false; v_dim_factor := 1.0
        tie_word_embeddings := false; vocab_size := 50304)"},
      {"doge", R"(hidden_size := 1024; intermediate_size := 2048; is_moe := false; keep_window_size := 2048
        max_position_embeddings := 2048; num_attention_heads := 8; num_hidden_layers := 32; num_key_value_heads := null
        tie_word_embeddings := false; vocab_size := 32768)"},
      {"axk2", R"(first_k_dense_replace := 1; hidden_size := 2048; index_head_dim := 128; index_n_heads := 16
        index_topk := 2048; intermediate_size := 5120; kv_lora_rank := 128; moe_intermediate_size := 512
        n_group := null; n_routed_experts := 128; n_shared_experts := 1; num_attention_heads := 32
        num_experts_per_tok := 8; num_hidden_layers := 48; q_lora_rank := 384; qk_nope_head_dim := 64
        qk_rope_head_dim := 32; v_head_dim := 64; tie_word_embeddings := false; vocab_size := 163840
        max_position_embeddings := 131072; num_key_value_heads := null)"},
      {"internvl_vision", R"(attention_bias := false; hidden_act := "gelu"; hidden_size := 1024; intermediate_size := 4096
        norm_type := "layer_norm"; num_attention_heads := 16; num_channels := 3
        num_hidden_layers := 24; use_absolute_position_embeddings := true; use_mean_pooling := true
        use_qk_norm := false)"},
      {"voxtral_encoder", R"(activation_function := "gelu"; hidden_size := 1280; intermediate_size := 5120
        max_source_positions := 1500; num_attention_heads := 20; num_hidden_layers := 32
        num_mel_bins := 128)"},
      {"qwen2_audio_encoder", R"(activation_function := "gelu"; d_model := 1280; encoder_attention_heads := 20
        encoder_ffn_dim := 5120; encoder_layers := 32; max_source_positions := 1500
        num_mel_bins := 128)"},
      {"audioflamingo3_encoder", R"(activation_function := "gelu"; hidden_size := 1280; intermediate_size := 5120
        max_source_positions := 1500; num_attention_heads := 20; num_hidden_layers := 32
        num_mel_bins := 128)"},
  };
}

}  // namespace turnpoint::huggingface
