// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/families.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace turnpoint {

namespace {

using Keys = std::initializer_list<std::string_view>;

constexpr std::int64_t kMaximumLayers = 4096, kMaximumWidth = 1 << 22, kMaximumHeads = 1 << 16;
constexpr std::int64_t kMaximumVocabulary = 1 << 28, kMaximumPositions = std::int64_t(1) << 31;

/// Reads one config with the spellings of several library versions.
class ConfigReader {
 public:
  explicit ConfigReader(JsonFields& fields) : fields_(fields) {}

  /// The first of `keys` that is there; a default of 0 means that the family has none.
  std::int64_t integer(Keys keys, std::int64_t maximum, std::int64_t otherwise) {
    for (const auto key : keys)
      if (fields_.has(key)) return fields_.integer(key, 1, maximum);
    if (otherwise == 0) fields_.fail(*keys.begin(), "is missing");
    return otherwise;
  }
  std::string text(Keys keys, const char* otherwise) {
    for (const auto key : keys)
      if (fields_.has(key)) return fields_.text(key);
    return otherwise;
  }
  bool flag(std::string_view key, bool otherwise) { return fields_.flag(key, otherwise); }
  bool has(std::string_view key) const { return fields_.has(key); }
  void fail(std::string_view key, std::string what) { fields_.fail(key, std::move(what)); }
  bool good() const { return !fields_.error(); }

  /// Heads, shared keys and the channels of a head; the divisions must come out even.
  void heads(TransformerShape& shape, Keys head_keys, std::int64_t default_heads, std::int64_t default_kv_heads,
             std::int64_t default_head_channels) {
    shape.heads = integer(head_keys, kMaximumHeads, default_heads);
    shape.kv_heads = integer({"num_key_value_heads"}, kMaximumHeads, default_kv_heads ? default_kv_heads : shape.heads);
    if (good() && shape.heads % shape.kv_heads != 0)
      fail("num_key_value_heads",
           fmt::format("{} does not divide the {} attention heads", shape.kv_heads, shape.heads));
    if (has("head_dim"))
      shape.head_channels = integer({"head_dim"}, kMaximumWidth, 0);
    else if (default_head_channels)
      shape.head_channels = default_head_channels;
    else if (good() && shape.hidden % shape.heads != 0)
      fail(*head_keys.begin(), fmt::format("{} heads do not divide the hidden size {}", shape.heads, shape.hidden));
    else if (good())
      shape.head_channels = shape.hidden / shape.heads;
  }

  /// Full attention is what the graph holds; a window would make the scores smaller.
  void sliding_window(TransformerShape& shape, bool used) {
    if (!used || !has("sliding_window")) return;
    const std::int64_t window = integer({"sliding_window"}, kMaximumPositions, 0);
    if (good() && window < shape.default_sequence())
      shape.warnings.push_back(
          fmt::format("sliding_window {} is not modelled: attention is counted over the whole sequence", window));
  }

 private:
  JsonFields& fields_;
};

TransformerShape gpt2(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.integer({"n_embd", "hidden_size"}, kMaximumWidth, 768);
  s.layers = c.integer({"n_layer", "num_hidden_layers"}, kMaximumLayers, 12);
  c.heads(s, {"n_head", "num_attention_heads"}, 12, 0, 0);
  s.intermediate = c.integer({"n_inner", "intermediate_size"}, kMaximumWidth, 4 * s.hidden);
  s.vocabulary = c.integer({"vocab_size"}, kMaximumVocabulary, 50257);
  s.positions = c.integer({"n_positions", "max_position_embeddings", "n_ctx"}, kMaximumPositions, 1024);
  s.activation = c.text({"activation_function", "hidden_act"}, "gelu_new");
  s.learned_positions = s.qkv_bias = s.output_bias = s.mlp_bias = true;
  s.tied_head = c.flag("tie_word_embeddings", true);
  if (c.flag("add_cross_attention", false)) c.fail("add_cross_attention", "cross attention is not supported");
  return s;
}

TransformerShape bert(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.integer({"hidden_size"}, kMaximumWidth, 768);
  s.layers = c.integer({"num_hidden_layers"}, kMaximumLayers, 12);
  c.heads(s, {"num_attention_heads"}, 12, 0, 0);
  s.intermediate = c.integer({"intermediate_size"}, kMaximumWidth, 3072);
  s.vocabulary = c.integer({"vocab_size"}, kMaximumVocabulary, 30522);
  s.positions = c.integer({"max_position_embeddings"}, kMaximumPositions, 512);
  s.token_types = c.integer({"type_vocab_size"}, kMaximumVocabulary, 2);
  s.activation = c.text({"hidden_act"}, "gelu");
  s.block = TransformerShape::Block::post_norm;
  s.learned_positions = s.qkv_bias = s.output_bias = s.mlp_bias = true;
  s.embedding_norm = true;
  // The published count is that of the bare model: embeddings, layers and pooler. Training it needs a loss, so the
  // tokens are predicted through the transposed token table, which adds no parameters.
  s.pooler = s.tied_head = true;
  if (c.text({"position_embedding_type"}, "absolute") != "absolute")
    c.fail("position_embedding_type", "only 'absolute' is supported");
  if (c.flag("is_decoder", false) || c.flag("add_cross_attention", false))
    c.fail("is_decoder", "only encoders are supported");
  return s;
}

/// What Llama, Mistral and Qwen share.
TransformerShape rotary_decoder(ConfigReader& c, const TransformerShape& defaults, std::int64_t default_head_channels) {
  TransformerShape s;
  s.hidden = c.integer({"hidden_size"}, kMaximumWidth, defaults.hidden);
  s.layers = c.integer({"num_hidden_layers"}, kMaximumLayers, defaults.layers);
  c.heads(s, {"num_attention_heads"}, defaults.heads, defaults.kv_heads, default_head_channels);
  s.intermediate = c.integer({"intermediate_size"}, kMaximumWidth, defaults.intermediate);
  s.vocabulary = c.integer({"vocab_size"}, kMaximumVocabulary, defaults.vocabulary);
  s.positions = c.integer({"max_position_embeddings"}, kMaximumPositions, defaults.positions);
  s.activation = c.text({"hidden_act"}, "silu");
  s.norm = TransformerShape::Norm::rms;
  s.mlp = TransformerShape::Mlp::gated;
  s.tied_head = c.flag("tie_word_embeddings", false);
  return s;
}

TransformerShape sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                       std::int64_t intermediate, std::int64_t vocabulary, std::int64_t positions) {
  TransformerShape s;
  s.layers = layers;
  s.hidden = hidden;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.intermediate = intermediate;
  s.vocabulary = vocabulary;
  s.positions = positions;
  return s;
}

TransformerShape llama(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 0, 11008, 32000, 2048), 0);
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.mlp_bias = c.flag("mlp_bias", false);
  return s;
}

TransformerShape mistral(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 8, 14336, 32000, 131072), 0);
  c.sliding_window(s, true);
  return s;
}

TransformerShape qwen2(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 32, 22016, 151936, 32768), 0);
  s.qkv_bias = true;
  c.sliding_window(s, c.flag("use_sliding_window", false));
  return s;
}

TransformerShape qwen3(ConfigReader& c) {
  TransformerShape s = rotary_decoder(c, sizes(32, 4096, 32, 32, 22016, 151936, 32768), 128);
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.query_key_norm = true;
  c.sliding_window(s, c.flag("use_sliding_window", false));
  return s;
}

TransformerShape phi(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.integer({"hidden_size", "n_embd"}, kMaximumWidth, 2048);
  s.layers = c.integer({"num_hidden_layers", "n_layer"}, kMaximumLayers, 24);
  c.heads(s, {"num_attention_heads", "n_head"}, 32, 0, 0);
  s.intermediate = c.integer({"intermediate_size", "n_inner"}, kMaximumWidth, 8192);
  s.vocabulary = c.integer({"vocab_size"}, kMaximumVocabulary, 51200);
  s.positions = c.integer({"max_position_embeddings", "n_positions"}, kMaximumPositions, 2048);
  s.activation = c.text({"hidden_act", "activation_function"}, "gelu_new");
  s.block = TransformerShape::Block::parallel;
  s.qkv_bias = s.output_bias = s.mlp_bias = s.head_bias = true;
  s.tied_head = c.flag("tie_word_embeddings", false);
  if (c.flag("qk_layernorm", false)) c.fail("qk_layernorm", "is not supported");
  return s;
}

struct Family {
  const char* model_type;
  const char* architecture;  ///< what `architectures` entries begin with
  TransformerShape (*read)(ConfigReader&);
};

// Longer prefixes first: "Qwen2Moe..." must not be taken for Qwen2, so a prefix ends where "For" or "Model" begins.
constexpr Family kFamilies[] = {{"bert", "Bert", bert},          {"gpt2", "GPT2", gpt2}, {"llama", "Llama", llama},
                                {"mistral", "Mistral", mistral}, {"phi", "Phi", phi},    {"qwen2", "Qwen2", qwen2},
                                {"qwen3", "Qwen3", qwen3}};

/// "BertForMaskedLM", "GPT2LMHeadModel", "LlamaModel" belong to "Bert", "GPT2", "Llama".
bool is_architecture_of(std::string_view architecture, std::string_view prefix) {
  if (!architecture.starts_with(prefix)) return false;
  architecture.remove_prefix(prefix.size());
  return architecture.starts_with("For") || architecture.starts_with("LMHead") || architecture.starts_with("Model");
}

const Family* find_family(JsonFields& fields, std::string& named, std::string& key) {
  if (fields.has("model_type")) {
    key = "model_type";
    named = fields.text(key);
    for (const auto& family : kFamilies)
      if (named == family.model_type) return &family;
    return nullptr;
  }
  key = "architectures";
  const auto found = fields.json().find("architectures");
  if (found == fields.json().end() || !found->is_array() || found->empty() || !found->front().is_string())
    return nullptr;
  named = found->front().get<std::string>();
  for (const auto& family : kFamilies)
    if (is_architecture_of(named, family.architecture)) return &family;
  return nullptr;
}

}  // namespace

const std::vector<std::string>& huggingface_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& family : kFamilies) list.push_back(family.model_type);
    return list;
  }();
  return names;
}

Expected<TransformerShape> read_huggingface_config(JsonFields fields) {
  if (fields.error()) return *fields.error();
  std::string named, key;
  const Family* family = find_family(fields, named, key);
  if (fields.error()) return *fields.error();
  if (!family) {
    std::string known;
    for (const auto& name : huggingface_families()) known += (known.empty() ? "" : ", ") + name;
    if (named.empty())
      fields.fail("model_type",
                  "neither model_type nor architectures says which family this is; known families: " + known);
    else
      fields.fail(key, fmt::format("unknown family '{}'; known families: {}", named, known));
    return *fields.error();
  }
  ConfigReader reader(fields);
  TransformerShape shape = family->read(reader);
  if (fields.error()) return *fields.error();
  return shape;
}

}  // namespace turnpoint
