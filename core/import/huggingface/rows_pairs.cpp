// SPDX-License-Identifier: Apache-2.0
// Encoders with decoders, and such decoders alone, which attend to states that come from outside.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyRow> pair_rows() {
  return {
      {"bart", "Bart", "-model", R"(
        hidden = d_model | hidden_size
        alone_ = $class == 'ForCausalLM'
        encoder_layers = $alone_ ? none : encoder_layers | num_hidden_layers
        layers = decoder_layers | num_hidden_layers
        encoder_heads = $alone_ ? none : encoder_attention_heads | num_attention_heads
        heads = decoder_attention_heads | num_attention_heads; kv_heads = $heads
        encoder_intermediate = $alone_ ? none : encoder_ffn_dim; intermediate = decoder_ffn_dim
        activation = activation_function; foreign_memory = $alone_
        block = 'post_norm'; learned_positions = true; embedding_norm = true; spare_positions = 2
        qkv_bias = true; output_bias = true; mlp_bias = true
        head = none)"},
      {"plbart", "PLBart", "bart", ""},
      {"mvp", "Mvp", "bart", "block = 'pre_norm'"},
      {"mbart", "MBart", "bart", "block = 'pre_norm'"},
      {"trocr", "TrOCR", "bart", R"(
        learned_positions = use_learned_position_embeddings; embedding_norm = layernorm_embedding
        encoder_layers = none; alone_ = true)"},
      {"pegasus", "Pegasus", "mbart", "embedding_norm = false; spare_positions = none"},
      {"blenderbot", "Blenderbot", "pegasus", ""},
      {"blenderbot-small", "BlenderbotSmall", "bart", "spare_positions = none"},
      {"marian", "Marian", "blenderbot-small", R"(
        embedding_norm = false; vocabulary = $alone_ ? decoder_vocab_size | vocab_size : vocab_size)"},
      {"bigbird_pegasus", "BigBirdPegasus", "pegasus", "qkv_bias = use_bias; output_bias = use_bias; embedding_norm = true; tied = $alone_ ? false : tie_word_embeddings"},
      {"m2m_100", "M2M100", "mbart", "embedding_norm = false; learned_positions = false; activation = activation_function"},
      {"led", "LED", "bart", R"(
        global_token = !$alone_; positions = max_decoder_position_embeddings; encoder_positions = max_encoder_position_embeddings
        spare_positions = none; window = attention_window[0] | attention_window
        max_decoder_position_embeddings := 1024; max_encoder_position_embeddings := 16384
        note: true: attention to the encoder's first position has weights of its own; other global positions are not counted)"},
      {"fsmt", "FSMT", "bart", R"(
        vocabulary = tgt_vocab_size; own_tables = !tie_word_embeddings; embedding_norm = false; positions = max_position_embeddings
        refuse src_vocab_size: src_vocab_size != tgt_vocab_size: source and target of different vocabularies are not supported)"},
      {"pegasus_x", "PegasusX", "m2m_100", R"(
        note: true: the encoder's global tokens are left out)"},
      {"whisper", "Whisper", "-model", R"(
        hidden = d_model | hidden_size
        alone_ = $class == 'ForCausalLM'
        encoder_layers = $alone_ ? none : encoder_layers | num_hidden_layers
        layers = decoder_layers
        encoder_heads = $alone_ ? none : encoder_attention_heads | num_attention_heads
        heads = decoder_attention_heads; kv_heads = $heads
        encoder_intermediate = $alone_ ? none : encoder_ffn_dim; intermediate = decoder_ffn_dim
        activation = activation_function; foreign_memory = $alone_; positions = max_target_positions
        learned_positions = true; qkv_bias = true; output_bias = true; mlp_bias = true; no_key_bias = true
        audio_bins = $alone_ ? none : num_mel_bins; audio_positions = max_source_positions
        head = none; d_model := 384; tie_word_embeddings := true
        refuse architectures: $class != '' && $class != 'ForConditionalGeneration' && $class != 'Model' && !$alone_: Whisper{$class} is not supported: WhisperForConditionalGeneration, WhisperModel and WhisperForCausalLM are)"},
      {"t5", "T5", "-model", R"(
        hidden = d_model | hidden_size; encoder_layers = num_layers | num_hidden_layers
        layers = num_decoder_layers | $encoder_layers; heads = num_heads | num_attention_heads; kv_heads = $heads
        head_channels = d_kv | head_dim; intermediate = d_ff
        positions = n_positions | 512; position_buckets = relative_attention_num_buckets
        gated_ = begins(feed_forward_proj, 'gated-')
        mlp = $gated_ ? 'gated' : 'plain'; activation = feed_forward_proj == 'gated-gelu' ? 'gelu_new' : feed_forward_proj == 'gated-silu' ? 'silu' : feed_forward_proj
        norm = 'rms'; head = none; activation_drops = dropout_rate > 0)"},
      {"t5gemma", "T5Gemma", "gemma2", R"(
        hidden = decoder.hidden_size; layers = decoder.num_hidden_layers; intermediate = decoder.intermediate_size
        heads = decoder.num_attention_heads; kv_heads = decoder.num_key_value_heads; head_channels = decoder.head_dim
        vocabulary = decoder.vocab_size | vocab_size; positions = decoder.max_position_embeddings
        activation = decoder.hidden_activation; window = decoder.sliding_window
        encoder_layers = encoder.num_hidden_layers; encoder_intermediate = encoder.intermediate_size; own_tables = true
        refuse encoder.hidden_size: encoder.hidden_size != decoder.hidden_size: encoders of another width than the decoder are not supported
        refuse encoder.num_attention_heads: encoder.num_attention_heads != decoder.num_attention_heads || encoder.num_key_value_heads != decoder.num_key_value_heads || encoder.head_dim != decoder.head_dim: encoders with other heads than the decoder are not supported)"},
      {"mt5", "MT5", "t5", ""},
      {"longt5", "LongT5", "t5", "refuse encoder_attention_type: encoder_attention_type == 'transient-global': only 'local' is supported"},
      {"umt5", "UMT5", "t5", "own_buckets = true"},
      {"switch_transformers", "SwitchTransformers", "t5", R"(
        mlp = 'plain'; experts = num_experts; experts_per_token = 1; expert_intermediate = d_ff
        step_ = num_decoder_layers / num_sparse_decoder_layers
        sparse = num_sparse_decoder_layers > 0 && $i % $step_ == ($step_ > 1 ? 1 : 0)
        refuse num_sparse_encoder_layers: num_sparse_encoder_layers != num_sparse_decoder_layers || num_layers != num_decoder_layers: must be as many as in the decoder)"},
  };
}

}  // namespace turnpoint::huggingface
