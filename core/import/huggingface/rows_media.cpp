// SPDX-License-Identifier: Apache-2.0
// Encoders of pictures and sound.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyRow> media_rows() {
  return {
      {"-picture", "", "-model", R"(
        vocabulary = none; positions = 1; causal = false; intermediate = intermediate_size; activation = hidden_act | activation_function
        qkv_bias = qkv_bias; output_bias = true; mlp_bias = true; label_bias = true; qkv_bias := true
        image_channels = num_channels | in_channels | 3
        image_height = image_size[0] | image_size; image_width = image_size[1] | image_size
        patch_height = patch_size[0] | patch_size; patch_width = patch_size[1] | patch_size
        image_tokens = 1; patch_bias = true; image_positions = true
        bare_ = $class == 'Model' || $class == 'VisionModel'
        head = $bare_ ? none : 'one'
        note: $bare_: this class has no loss: training is counted as far as its result)"},
      {"vit", "ViT", "-picture", R"(
        pooler = $bare_
        refuse architectures: $class != '' && !$bare_ && $class != 'ForImageClassification': 'ViT{$class}' is not supported: ViTForImageClassification and ViTModel are)"},
      {"vit_msn", "ViTMSN", "-picture", ""},
      {"ijepa", "IJepa", "-picture", "image_tokens = 0"},
      {"deit", "DeiT", "-picture", "image_tokens = 2"},
      {"beit", "Beit", "-picture", R"(
        image_positions = use_absolute_position_embeddings; no_key_bias = true; layer_scale = layer_scale_init_value > 0
        refuse use_relative_position_bias: use_relative_position_bias || use_shared_relative_position_bias: biases by distance are not supported)"},
      {"data2vec-vision", "Data2VecVision", "beit", ""},
      {"dinov2", "Dinov2", "-picture", R"(
        intermediate = mlp_ratio * $hidden; layer_scale = true; label_mean = true
        refuse use_swiglu_ffn: use_swiglu_ffn: gated MLPs are not supported here)"},
      {"dinov2_with_registers", "Dinov2WithRegisters", "dinov2", "image_registers = num_register_tokens"},
      {"dinov3_vit", "DINOv3ViT", "-picture", R"(
        image_registers = num_register_tokens; image_positions = false; layer_scale = true
        mlp = use_gated_mlp ? 'gated' : 'plain'; qkv_bias = query_bias; no_key_bias = !key_bias; output_bias = proj_bias
        mlp_bias = mlp_bias)"},
      {"clip_vision_model", "CLIPVision CLIP", "-picture", R"(
        qkv_bias = true; patch_bias = false; embedding_norm = true
        bare_ = $class != 'ForImageClassification')"},
      {"chinese_clip_vision_model", "ChineseCLIPVision", "clip_vision_model", ""},
      {"mlcd_vision_model", "MLCDVision", "clip_vision_model", "image_positions = false"},
      // Patches overlap, and the picture is a spectrogram.
      {"audio-spectrogram-transformer", "AST", "-picture", R"(
        image_channels = 1; image_height = num_mel_bins; image_width = max_length; image_tokens = 2
        step_height = frequency_stride; step_width = time_stride
        note: !$bare_: the norm before the classes is left out
        refuse architectures: $class != '' && !$bare_ && $class != 'ForAudioClassification': AST{$class} is not supported: ASTForAudioClassification and ASTModel are)"},
      {"pixtral", "PixtralVision", "-picture", R"(
        norm = 'rms'; mlp = 'gated'; qkv_bias = false; output_bias = false; mlp_bias = false; patch_bias = false
        head_channels = head_dim; image_tokens = 0; image_positions = false; embedding_norm = true; no_last_norm = true; bare_ = true
        note: true: smaller pictures have fewer patches: image_size is taken)"},
      {"siglip_vision_model", "SiglipVision Siglip", "-picture", R"(
        qkv_bias = true; image_tokens = 0; bare_ = $class != 'ForImageClassification'; attention_pool = $bare_ && (vision_use_head | true))"},
      {"siglip2_vision_model", "Siglip2Vision", "siglip_vision_model", R"(
        image_height = 16 * patch_size; image_width = (num_patches / 16) * patch_size)"},
      {"idefics3_vision", "Idefics3Vision", "siglip_vision_model", "attention_pool = false"},
      {"video_llama_3_vision", "VideoLlama3Vision", "idefics3_vision", R"(
        image_positions = false; image_height = image_size[0] | image_size | 224; image_width = image_size[1] | image_size | 224
        note: !has(image_size): pictures may have any size: 224 by 224 is taken)"},
      {"smolvlm_vision", "SmolVLMVision", "idefics3_vision", ""},
      {"internvl_vision", "InternVLVision", "-picture", R"(
        qkv_bias = attention_bias; layer_scale = true; no_last_norm = use_mean_pooling
        image_positions = use_absolute_position_embeddings; bare_ = true; image_size := 448; patch_size := 14
        norm = norm_type == 'rms_norm' ? 'rms' : 'layer'
        refuse use_qk_norm: use_qk_norm: norms of queries and keys are not supported here)"},
      {"-sound", "", "-model", R"(
        hidden = hidden_size | d_model; layers = num_hidden_layers | encoder_layers
        heads = num_attention_heads | encoder_attention_heads; intermediate = intermediate_size | encoder_ffn_dim
        kv_heads = $heads; vocabulary = none; positions = 1; causal = false; head = none; activation = activation_function
        qkv_bias = true; no_key_bias = true; output_bias = true; mlp_bias = true
        audio_bins = num_mel_bins; audio_positions = max_source_positions
        note: true: this encoder has no loss: training is counted as far as its result)"},
      {"voxtral_encoder", "Voxtral", "-sound", ""},
      {"qwen2_audio_encoder", "Qwen2Audio", "-sound", ""},
      {"audioflamingo3_encoder", "AudioFlamingo3", "-sound", ""},
      {"glmasr_encoder", "GlmAsr", "-sound", "audio_positions = max_position_embeddings; activation = hidden_act"},
  };
}

}  // namespace turnpoint::huggingface
