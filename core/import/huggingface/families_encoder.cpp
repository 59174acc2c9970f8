// SPDX-License-Identifier: Apache-2.0
// Encoders and encoder-decoders.
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/import/huggingface/family_functions.h"

namespace turnpoint::huggingface {

namespace {

/// What BERT and its relatives share. The published counts are those of the bare models: embeddings, layers and pooler.
/// Training needs a loss, so the tokens are predicted through the transposed token table, which adds no parameters.
TransformerShape bert_like(ConfigReader& c, const TransformerShape& defaults) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, defaults.hidden);
  s.layers = c.layers({"num_hidden_layers"}, defaults.layers);
  c.heads(s, {"num_attention_heads"}, defaults.heads);
  s.intermediate = c.width({"intermediate_size"}, defaults.intermediate);
  c.vocabulary(s, defaults.vocabulary, defaults.positions);
  s.token_types = c.count("type_vocab_size", ConfigReader::kMaximumVocabulary, 2);
  s.activation = c.text({"hidden_act"}, "gelu");
  s.block = TransformerShape::Block::post_norm;
  s.learned_positions = s.qkv_bias = s.output_bias = s.mlp_bias = true;
  s.embedding_norm = s.pooler = s.tied_head = true;
  if (c.text({"position_embedding_type"}, "absolute") != "absolute")
    c.fail("position_embedding_type", "only 'absolute' is supported");
  if (c.flag("is_decoder", false) || c.flag("add_cross_attention", false))
    c.fail("is_decoder", "only encoders are supported");
  return s;
}

}  // namespace

TransformerShape bert(ConfigReader& c) { return bert_like(c, sizes(12, 768, 12, 12, 3072, 30522, 512)); }

TransformerShape roberta(ConfigReader& c) {
  TransformerShape s = bert_like(c, sizes(12, 768, 12, 12, 3072, 50265, 512));
  // Positions are numbered from the padding token on, so the table has two rows that no token reaches.
  if (!c.good()) return s;
  if (s.positions < 3) c.fail("max_position_embeddings", fmt::format("must be at least 3, not {}", s.positions));
  s.spare_positions = 2;
  s.positions -= 2;
  return s;
}

TransformerShape distilbert(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"dim", "hidden_size"}, 768);
  s.layers = c.layers({"n_layers", "num_hidden_layers"}, 6);
  c.heads(s, {"n_heads", "num_attention_heads"}, 12);
  s.intermediate = c.width({"hidden_dim"}, 3072);
  c.vocabulary(s, 30522, 512);
  s.activation = c.text({"activation"}, "gelu");
  s.block = TransformerShape::Block::post_norm;
  s.learned_positions = s.qkv_bias = s.output_bias = s.mlp_bias = true;
  s.embedding_norm = s.tied_head = true;
  return s;
}

TransformerShape albert(ConfigReader& c) {
  TransformerShape s = bert_like(c, sizes(12, 4096, 64, 64, 16384, 30000, 512));
  s.activation = c.text({"hidden_act"}, "gelu_new");
  s.embedding_channels = c.width({"embedding_size"}, 128);
  s.embedding_projection = true;
  s.shared_groups = c.layers({"num_hidden_groups"}, 1);
  if (!c.good()) return s;
  if (s.shared_groups > s.layers)
    c.fail("num_hidden_groups", fmt::format("{} groups are more than the {} layers", s.shared_groups, s.layers));
  if (c.layers({"inner_group_num"}, 1) != 1) c.fail("inner_group_num", "only one layer per group is supported");
  return s;
}

TransformerShape electra(ConfigReader& c) {
  TransformerShape s = bert_like(c, sizes(12, 256, 4, 4, 1024, 30522, 512));
  s.pooler = false;
  s.embedding_channels = c.width({"embedding_size"}, 128);
  s.embedding_projection = s.embedding_channels != s.hidden;
  s.warnings.emplace_back(
      "the head of the discriminator or generator is left out: tokens are predicted through the token table");
  return s;
}

TransformerShape deberta_v2(ConfigReader& c) {
  TransformerShape s = bert_like(c, sizes(24, 1536, 24, 24, 6144, 128100, 512));
  s.pooler = false;
  s.token_types = c.count("type_vocab_size", ConfigReader::kMaximumVocabulary, 0);
  s.learned_positions = c.flag("position_biased_input", true);
  if (c.has("attention_head_size")) s.head_channels = c.width({"attention_head_size"}, s.head_channels);
  if (c.count("conv_kernel_size", 1024, 0) > 0)
    c.fail("conv_kernel_size", "a convolution beside the first layer is not supported");
  if (c.good() && c.width({"embedding_size"}, s.hidden) != s.hidden)
    c.fail("embedding_size", "embeddings that are narrower than the layers are not supported here");
  if (!c.good() || !c.flag("relative_attention", false)) return s;
  // Absent sizes are written as -1.
  const auto size = [&](const char* key) { return c.fields().integer(key, -1, ConfigReader::kMaximumWidth, -1); };
  const std::int64_t buckets = size("position_buckets"), reach = size("max_relative_positions");
  s.relative.rows = 2 * (buckets > 0 ? buckets : reach > 0 ? reach : s.positions);
  const auto& json = c.fields().json();
  const auto types = json.find("pos_att_type");
  const auto has_type = [&](const char* type) {
    if (types == json.end()) return false;
    if (types->is_string())
      return ("|" + types->get<std::string>() + "|").find(fmt::format("|{}|", type)) != std::string::npos;
    return types->is_array() && std::find(types->begin(), types->end(), type) != types->end();
  };
  s.relative.content_to_position = has_type("c2p");
  s.relative.position_to_content = has_type("p2c");
  s.relative.own_projections = !c.flag("share_att_key", false);
  if (!s.relative.content_to_position && !s.relative.position_to_content)
    c.fail("pos_att_type", "must name c2p, p2c or both where relative_attention is true");
  if (c.text({"norm_rel_ebd"}, "none") != "layer_norm") c.fail("norm_rel_ebd", "only 'layer_norm' is supported");
  return s;
}

TransformerShape t5(ConfigReader& c) {
  const bool multilingual = c.text({"model_type"}, "t5") == "mt5";
  TransformerShape s;
  s.hidden = c.width({"d_model", "hidden_size"}, 512);
  s.encoder_layers = c.layers({"num_layers", "num_hidden_layers"}, multilingual ? 8 : 6);
  s.layers = c.layers({"num_decoder_layers"}, s.encoder_layers);
  s.heads = s.kv_heads =
      c.integer({"num_heads", "num_attention_heads"}, ConfigReader::kMaximumHeads, multilingual ? 6 : 8);
  s.head_channels = c.width({"d_kv", "head_dim"}, 64);
  s.intermediate = c.width({"d_ff"}, multilingual ? 1024 : 2048);
  c.vocabulary(s, multilingual ? 250112 : 32128, 512, {"n_positions"});
  s.position_buckets = c.integer({"relative_attention_num_buckets"}, 1 << 20, 32);
  std::string activation = c.text({"feed_forward_proj"}, multilingual ? "gated-gelu" : "relu");
  if (activation.starts_with("gated-")) {
    s.mlp = TransformerShape::Mlp::gated;
    activation.erase(0, 6);
  }
  s.activation = activation;
  s.norm = TransformerShape::Norm::rms;
  s.tied_head = c.flag("tie_word_embeddings", !multilingual);
  return s;
}

void encoder_decoder(ConfigReader& c, TransformerShape& s, std::int64_t hidden, std::int64_t layers,
                     std::int64_t heads) {
  s.hidden = c.width({"d_model", "hidden_size"}, hidden);
  s.encoder_layers = c.layers({"encoder_layers", "num_hidden_layers"}, layers);
  s.layers = c.layers({"decoder_layers"}, layers);
  s.encoder_heads = c.integer({"encoder_attention_heads", "num_attention_heads"}, ConfigReader::kMaximumHeads, heads);
  s.heads = s.kv_heads = c.integer({"decoder_attention_heads"}, ConfigReader::kMaximumHeads, heads);
  s.encoder_intermediate = c.width({"encoder_ffn_dim"}, 4 * hidden);
  s.intermediate = c.width({"decoder_ffn_dim"}, 4 * hidden);
  c.check_heads(s, "decoder_attention_heads", "decoder_attention_heads");
  if (c.good() && s.hidden % s.encoder_heads != 0)
    c.fail("encoder_attention_heads",
           fmt::format("{} heads do not divide the hidden size {}", s.encoder_heads, s.hidden));
}

TransformerShape bart(ConfigReader& c) {
  TransformerShape s;
  encoder_decoder(c, s, 1024, 12, 16);
  c.vocabulary(s, 50265, 1024);
  s.activation = c.text({"activation_function"}, "gelu");
  s.block = TransformerShape::Block::post_norm;
  s.learned_positions = s.qkv_bias = s.output_bias = s.mlp_bias = s.embedding_norm = true;
  s.spare_positions = 2;
  s.tied_head = c.flag("tie_word_embeddings", true);
  return s;
}

}  // namespace turnpoint::huggingface
