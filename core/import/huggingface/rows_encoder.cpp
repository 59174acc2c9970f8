// SPDX-License-Identifier: Apache-2.0
// Encoders of text: BERT and its relatives. The published counts are those of the bare models (embeddings, layers and
// pooler); a class with a language head counts it. Training needs a loss, so tokens of a bare model are predicted
// through the transposed token table, which adds no parameters.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyRow> encoder_rows() {
  return {
      {"-bert", "", "-model", R"(
        block = 'post_norm'; learned_positions = true; embedding_norm = true; token_types = type_vocab_size
        causal = is_decoder; hidden_dropout_prob := 0.1; attention_probs_dropout_prob := 0.1
        qkv_bias = true; output_bias = true; mlp_bias = true
        words_ = $class == 'ForMaskedLM' || $class == 'LMHeadModel' || $class == 'ForCausalLM' || $class == 'ForPreTraining' || $class == 'WithLMHeadModel'
        transform = $words_; head_bias = $words_
        pooler = $class == '' || $class == 'Model' || $class == 'ForPreTraining' || $class == 'ForSequenceClassification' || $class == 'ForMultipleChoice'
        tied = $words_ ? tie_word_embeddings : true; tie_word_embeddings := true
        head = $class == 'ForSequenceClassification' ? 'one' : $class == 'ForTokenClassification' ? 'each' : $class == 'ForQuestionAnswering' ? 'span' : none
        label_bias = true
        refuse position_embedding_type: has(position_embedding_type) && position_embedding_type != 'absolute': only 'absolute' is supported
        refuse add_cross_attention: add_cross_attention: cross attention is not supported)"},
      // The published count of BERT's masked models is that of the bare model with its pooler.
      {"bert", "Bert", "-bert", R"(
        words_ = $class == 'LMHeadModel' || $class == 'ForCausalLM' || $class == 'ForPreTraining'
        pooler = !$words_ && $head != 'each' && $head != 'span' || $class == 'ForPreTraining')"},
      {"ernie", "Ernie", "-bert", ""},
      {"dpr", "DPR", "-bert", "pooler = false"},
      {"megatron-bert", "MegatronBert", "-bert", "block = 'pre_norm'; embedding_norm = false"},
      {"bert-generation", "BertGeneration", "-bert", R"(
        words_ = $class == 'Decoder'; transform = false; pooler = false; token_types = none)"},
      {"big_bird", "BigBird", "-bert", "qkv_bias = use_bias; pooler = true"},
      {"layoutlm", "LayoutLM", "-bert", "pooler = true; token_types = type_vocab_size + 4 * max_2d_position_embeddings"},
      {"mra", "Mra", "-bert", "spare_positions = 2"},
      {"yoso", "Yoso", "-bert", "spare_positions = 2"},
      {"tapas", "Tapas", "-bert", "token_types = 3 + 256 + 256 + 2 + 256 + 256 + 10"},
      {"convbert", "ConvBert", "-bert", "refuse model_type: true: attention mixed with convolutions made of the input is not supported"},
      {"nystromformer", "Nystromformer", "-bert", ""},
      {"rembert", "RemBert", "-bert", R"(
        embedding_channels = input_embedding_size; embedding_projection = true
        transform_channels = output_embedding_size; tied = $words_ ? false : true)"},
      // Positions are numbered from the padding token on, so the table has two rows that no token reaches.
      {"roberta", "Roberta", "-bert", R"(
        positions = max_position_embeddings - 2; spare_positions = 2
        refuse max_position_embeddings: max_position_embeddings < 3: must be at least 3, not {max_position_embeddings})"},
      {"longformer", "Longformer", "roberta", R"(
        global_token = true; window = attention_window[0] | attention_window
        note: true: attention to the first position has weights of its own; other global positions are not counted)"},
      {"fnet", "FNet", "-bert", R"(
        heads = 1; embedding_projection = true; pooler = true; mixer = 'fourier'; type_vocab_size := 4)"},
      {"camembert", "Camembert", "roberta", ""},
      {"ibert", "IBert", "roberta", ""},
      {"mpnet", "MPNet", "roberta", "token_types = none"},
      {"jina_embeddings_v3", "JinaEmbeddingsV3", "-bert", "learned_positions = false"},
      {"gte", "Gte", "-bert", "learned_positions = false; mlp = 'gated'; no_up_bias = true"},
      {"nomic_bert", "NomicBert", "gte", "qkv_bias = false; output_bias = false; mlp_bias = false; no_up_bias = false"},
      {"xlm", "XLM", "-bert", R"(
        intermediate = 4 * $hidden; token_types = none; transform = false; pooler = false
        activation = gelu_activation ? 'gelu' : 'relu'
        refuse n_langs: n_langs > 1 && use_lang_emb: tables of languages are not supported)"},
      {"flaubert", "Flaubert", "xlm", "block = pre_norm ? 'pre_norm' : 'post_norm'"},
      {"xlm-roberta", "XLMRoberta", "roberta", ""},
      {"data2vec-text", "Data2VecText", "roberta", ""},
      {"roberta-prelayernorm", "RobertaPreLayerNorm", "roberta", "block = 'pre_norm'"},
      {"xlm-roberta-xl", "XLMRobertaXL", "roberta", "block = 'pre_norm'; embedding_norm = false"},
      {"roformer", "RoFormer", "-bert", R"(
        learned_positions = false; pooler = false; embedding_channels = embedding_size | $hidden
        transform_channels = embedding_size | $hidden)"},
      {"distilbert", "DistilBert", "-bert", R"(
        intermediate = hidden_dim; token_types = none; pooler = $class == 'ForSequenceClassification'; activation = activation)"},
      {"albert", "Albert", "-bert", R"(
        embedding_channels = embedding_size; embedding_projection = true; shared_groups = num_hidden_groups
        transform_channels = embedding_size
        refuse inner_group_num: inner_group_num != 1 && has(inner_group_num): only one layer per group is supported)"},
      {"electra", "Electra", "-bert", R"(
        pooler = false; embedding_channels = embedding_size; embedding_projection = embedding_size != $hidden
        words_ = $class == 'ForMaskedLM' || $class == 'ForCausalLM'; transform_channels = embedding_size
        note: !$words_ && $head == none: the head of the discriminator or generator is left out: tokens are predicted through the token table)"},
      {"deberta-v2", "DebertaV2", "-bert", R"(
        pooler = false; learned_positions = position_biased_input; head_channels = attention_head_size
        distance_rows = relative_attention ? 2 * (position_buckets > 0 ? position_buckets : max_relative_positions > 0 ? max_relative_positions : $positions) : none
        content_to_position = in(pos_att_type, 'c2p'); position_to_content = in(pos_att_type, 'p2c')
        distance_projections = !share_att_key
        position_biased_input := true
        refuse conv_kernel_size: conv_kernel_size > 0: a convolution beside the first layer is not supported
        refuse embedding_size: has(embedding_size) && embedding_size != $hidden: embeddings that are narrower than the layers are not supported here
        refuse pos_att_type: relative_attention && !in(pos_att_type, 'c2p') && !in(pos_att_type, 'p2c'): must name c2p, p2c or both where relative_attention is true
        refuse norm_rel_ebd: relative_attention && norm_rel_ebd != 'layer_norm': only 'layer_norm' is supported)"},
      // Predicts words from both sides in the order that a permutation gives, which only its mask knows.
      {"xlnet", "XLNet", "-model", R"(
        causal = false; block = 'post_norm'; intermediate = d_inner | 4 * $hidden; head_channels = d_head; activation = ff_activation
        kv_heads = $heads; mlp_bias = true; head_bias = $class == 'LMHeadModel' || $class == ''
        tied = $head_bias ? tie_word_embeddings : true; label_bias = true
        distances_fixed = true; distance_rows = 2 * $positions; content_to_position = true; distance_projections = true
        refuse architectures: $class != '' && $class != 'Model' && $class != 'LMHeadModel' && $class != 'ForTokenClassification': XLNet{$class} is not supported: XLNetLMHeadModel, XLNetModel and XLNetForTokenClassification are
        note: true: the second stream of queries, and the vector it begins with, are left out)"},
      {"clip_text_model", "CLIPText", "-classic", R"(
        tied = true; qkv_bias = true
        note: true: this encoder has no loss: tokens are predicted through the token table)"},
      {"modernbert", "ModernBert", "-model", R"(
        causal = false; norm = norm_bias ? 'layer' : 'layer_unbiased'; mlp = 'gated'; embedding_norm = true; no_first_norm = true
        activation = hidden_activation; qkv_bias = attention_bias; output_bias = attention_bias; mlp_bias = mlp_bias
        words_ = $class == 'ForMaskedLM' || $class == 'ForCausalLM' || $class == ''
        transform = $words_; no_transform_bias = !classifier_bias; head_bias = $words_ && decoder_bias
        tied = $words_ ? tie_word_embeddings : true; tie_word_embeddings := true
        label_bias = true)"},
      {"eurobert", "EuroBert", "llama", ""},
      {"esmc", "Esmc", "llama", R"(
        norm = 'layer'; query_key_norm = 'layer_unbiased'; query_key_scale = 'all_heads'
        words_ = $class == 'ForMaskedLM' || $class == ''
        transform = $words_; head_bias = $words_)"},
      {"modernbert-decoder", "ModernBertDecoder", "modernbert", ""},
  };
}

}  // namespace turnpoint::huggingface
