// SPDX-License-Identifier: Apache-2.0
// What all rows share, and decoders with LayerNorm: GPT-2 and what came between it and Llama. What the rows state was
// read from the modeling code of the transformers library.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyRow> classic_rows() {
  return {
      {"-model", "", "", R"(
        hidden = hidden_size | n_embd | d_model | dim | emb_dim | n_embed
        layers = num_hidden_layers | n_layer | n_layers | num_layers
        heads = num_attention_heads | n_head | n_heads | num_heads | attention_heads
        kv_heads = num_key_value_heads | n_kv_heads | num_kv_heads | $heads
        head_channels = head_dim
        intermediate = intermediate_size | n_inner | ffn_hidden_size | ffn_dim | hidden_dim
        vocabulary = vocab_size
        positions = max_position_embeddings | n_positions | max_seq_len | max_sequence_length | n_ctx | seq_length | 2048
        activation = hidden_act | hidden_activation | activation_function | activation
        tied = tie_word_embeddings
        causal = true
        attention_drops = (attn_pdrop | attention_probs_dropout_prob | attention_dropout | attn_dropout | dropout_rate) > 0
        branch_drops = (resid_pdrop | hidden_dropout_prob | resid_dropout | residual_dropout | dropout | dropout_rate) > 0
        activation_drops = activation_dropout > 0
        embedding_drops = (embd_pdrop | hidden_dropout_prob | embed_dropout | dropout | dropout_rate) > 0
        head = $class == 'ForSequenceClassification' ? 'one' : $class == 'ForTokenClassification' ? 'each' : $class == 'ForQuestionAnswering' ? 'span' : $class == 'Model' || $class == 'TextModel' ? 'bare' : none
        labels = num_labels
        window_ = (use_sliding_window | true) ? (has(layer_types) && !in(layer_types, 'sliding_attention') ? none : sliding_window) : none
      )"},
      {"-classic", "", "-model", R"(
        intermediate = n_inner | intermediate_size | ffn_dim | 4 * $hidden
        learned_positions = true; qkv_bias = true; output_bias = true; mlp_bias = true
        refuse add_cross_attention: add_cross_attention: cross attention is not supported
      )"},
      {"gpt2", "GPT2", "-classic", "attn_pdrop := 0.1; resid_pdrop := 0.1; embd_pdrop := 0.1"},
      {"gpt-sw3", "", "gpt2", ""},
      {"openai-gpt", "OpenAIGPT", "gpt2", "block = 'post_norm'; activation = afn"},
      {"gpt_bigcode", "GPTBigCode", "gpt2", "kv_heads = multi_query ? 1 : $heads"},
      {"biogpt", "BioGpt", "-classic", "spare_positions = 2"},
      {"xglm", "XGLM", "-classic", "learned_positions = false; intermediate = ffn_dim | 4 * $hidden"},
      {"gptj", "GPTJ", "-classic", R"(
        learned_positions = false; qkv_bias = false; output_bias = false; head_bias = true; block = 'parallel')"},
      {"codegen", "CodeGen", "gptj", ""},
      {"ctrl", "CTRL", "-classic", "learned_positions = false; intermediate = dff; head_bias = true; activation = 'relu'"},
      {"gpt_neox", "GPTNeoX", "-classic", R"(
        learned_positions = false
        block = use_parallel_residual ? 'parallel_two_norms' : 'pre_norm'
        qkv_bias = attention_bias; output_bias = attention_bias)"},
      {"gpt_neox_japanese", "GPTNeoXJapanese", "gpt_neox", R"(
        intermediate = intermediate_multiple_size * $hidden
        block = 'pre_norm'; qkv_bias = false; output_bias = false; mlp_bias = false)"},
      {"bloom", "Bloom", "-classic", R"(
        hidden = hidden_size | n_embed | n_embd; learned_positions = false; embedding_norm = true)"},
      {"falcon", "Falcon", "-classic", R"(
        intermediate = ffn_hidden_size | 4 * $hidden
        kv_heads = new_decoder_architecture ? num_kv_heads | n_head_kv | $heads : multi_query ? 1 : $heads
        learned_positions = false; rotary = !alibi
        norms_ = num_ln_in_parallel_attn | (new_decoder_architecture ? 2 : 1)
        block = !(new_decoder_architecture || parallel_attn) ? 'pre_norm' : new_decoder_architecture && $norms_ == 2 ? 'parallel_two_norms' : 'parallel'
        qkv_bias = bias; output_bias = bias; mlp_bias = bias)"},
      {"mpt", "Mpt MPT", "-classic", R"(
        hidden = d_model | hidden_size
        kv_heads = attn_config.kv_n_heads | (attn_config.attn_type == 'multiquery_attention' ? 1 : $heads)
        intermediate = expansion_ratio * $hidden
        learned_positions = false
        qkv_bias = !no_bias; output_bias = !no_bias; mlp_bias = !no_bias
        norm = no_bias ? 'layer_unbiased' : 'layer'
        activation = 'gelu'
        refuse attn_config.qk_ln: attn_config.qk_ln: is not supported)"},
      {"opt", "OPT", "-classic", R"(
        intermediate = ffn_dim; own_output_projection = true; spare_positions = 2
        embedding_channels = word_embed_proj_dim | $hidden
        block = do_layer_norm_before ? 'pre_norm' : 'post_norm'
        norm = layer_norm_elementwise_affine ? 'layer' : 'bare'
        qkv_bias = enable_bias; output_bias = enable_bias; mlp_bias = enable_bias)"},
      {"phi", "Phi", "-classic", R"(
        learned_positions = false; block = 'parallel'; head_bias = true
        query_key_norm = qk_layernorm ? 'layer' : none)"},
      {"persimmon", "Persimmon", "-classic", R"(
        learned_positions = false; query_key_norm = qk_layernorm ? 'layer' : none)"},
      {"gpt_neo", "GPTNeo", "-classic", R"(
        qkv_bias = false; intermediate = intermediate_size | 4 * $hidden
        window = in(attention_types, 'local') || in(attention_layers, 'local') || !has(attention_types) && !has(attention_layers) ? window_size : none
        window_layers = ' of the local layers')"},
      {"starcoder2", "Starcoder2", "-classic", R"(
        learned_positions = false; rotary = true; qkv_bias = use_bias; output_bias = use_bias
        mlp_bias = use_bias; window = sliding_window)"},
      {"cohere", "Cohere", "-model", R"(
        norm = 'layer_unbiased'; block = 'parallel'; mlp = 'gated'; rotary = true
        qkv_bias = attention_bias; output_bias = attention_bias
        query_key_norm = use_qk_norm ? 'layer_unbiased' : none; query_key_scale = 'head')"},
      {"cohere2", "Cohere2", "cohere", "query_key_norm = none; window = $window_"},
      {"jais2", "Jais2", "-model", R"(
        qkv_bias = attention_bias; output_bias = attention_bias; mlp_bias = mlp_bias)"},
  };
}

}  // namespace turnpoint::huggingface
