// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/nearest.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace turnpoint::huggingface {

namespace {

using Keys = std::set<std::string, std::less<>>;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

/// The keys that an expression reads: its words, but for what stands in quotes, after $ and before a parenthesis.
void add_keys(std::string_view expression, Keys& keys) {
  for (std::size_t at = 0; at < expression.size();) {
    const char c = expression[at];
    if (c == '\'') {
      const auto end = expression.find('\'', at + 1);
      at = end == std::string_view::npos ? expression.size() : end + 1;
      continue;
    }
    if (!is_word(c)) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < expression.size() && is_word(expression[end])) ++end;
    const bool setting = at > 0 && expression[at - 1] == '$';
    const bool call = end < expression.size() && expression[end] == '(';
    const auto word = expression.substr(at, end - at);
    if (!setting && !call && !std::isdigit(static_cast<unsigned char>(c)))
      keys.emplace(word.substr(0, word.find('.')));
    at = end;
  }
}

Keys keys_of(const Family& family) {
  Keys keys;
  for (const auto& [name, expression] : family.settings) add_keys(expression, keys);
  for (const auto* list : {&family.refusals, &family.notes})
    for (const Refusal& one : *list) add_keys(one.condition, keys);
  for (const auto& [key, value] : family.defaults->items()) keys.insert(key);
  return keys;
}

const std::map<std::string, Keys, std::less<>>& keys_by_family() {
  static const auto all = [] {
    std::map<std::string, Keys, std::less<>> made;
    for (const auto& [name, family] : family_table())
      if (!name.starts_with("-") && !family.settings.empty()) made.emplace(name, keys_of(family));
    return made;
  }();
  return all;
}

/// Training, sampling, numbers of tokens: no parameters hang on keys that hold one of these.
constexpr std::string_view kIndifferent[] = {
    "token", "dropout", "_eps", "epsilon", "init", "rope", "theta", "loss", "coef", "dtype", "version", "cache",
    "output_", "drop", "architectures", "model_type", "id2label", "label2id", "name_or_path", "scaling", "softcap",
    "multiplier", "_std", "max_length", "beam", "penalty", "temperature", "chunk_size_feed_forward", "is_decoder",
    "is_encoder_decoder", "cross_attention", "tie_", "pruned", "finetuning", "problem_type", "auto_map", "return_",
    "pretraining_tp", "quantization", "window", "layer_types", "prefix", "norm_topk", "topk_group", "jitter", "scale",
    "torch", "attn_implementation", "_impl", "use_bfloat16", "max_window_layers", "sliding", "interleave", "original",
    "transformers", "mup", "yarn", "gradient", "clip", "kernels", "residual_in", "rescale", "time_step", "freq",
    "seed", "scoring", "attn_scale", "swiglu", "hidden_act", "causal", "license", "mode", "base", "max_position",
    "max_seq", "positions", "lower_bound", "safe_gate", "renormalize", "fp32", "logits", "suppress", "summary_"};

/// A key on which a count may hang.
bool is_structural(const std::string& key, const nlohmann::json& value) {
  if (std::any_of(std::begin(kIndifferent), std::end(kIndifferent),
                  [&](std::string_view part) { return key.find(part) != std::string::npos; }))
    return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() > 1;
  return value.is_object() && !value.empty();
}

constexpr std::size_t kTelling = 4;  ///< letters below which two names are alike by chance

/// Letters at the beginning that two names have in common.
std::size_t common_letters(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// Rows that differ from this one only in part: the more, the more usual it is.
std::ptrdiff_t followers(std::string_view name) {
  return std::count_if(family_table().begin(), family_table().end(),
                       [&](const auto& entry) { return entry.second.like == name; });
}

bool holds(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

bool has_key(const nlohmann::json& config, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) {
    const auto found = config.find(key);
    return found != config.end() && !found->is_null();
  });
}

constexpr ConfigKind kDecoder{FamilyKind::decoder, true, "decoder"},
    kEncoder{FamilyKind::encoder, true, "encoder of text"}, kPair{FamilyKind::pair, true, "encoder with decoder"},
    kPicture{FamilyKind::picture, true, "model of pictures"}, kSound{FamilyKind::sound, true, "model of sound"},
    kParts{FamilyKind::other, true, "model of several parts"},
    kUntold{};

/// Whether a family may be offered for a config of this kind.
bool fits_kind(const Family& family, const ConfigKind& kind) {
  return !kind.known || kind.kind == family.kind;
}

}  // namespace

ConfigKind kind_of_config(const nlohmann::json& config, std::string_view name) {
  // Parts that are models: objects with sizes of their own. The settings of an attention or of a quantization are none.
  for (const auto& [key, value] : config.items())
    if (value.is_object() && (value.contains("model_type") ||
                              (key.ends_with("_config") && has_key(value, {"hidden_size", "vocab_size"}))))
      return kParts;
  std::string head;
  if (const auto found = config.find("architectures"); found != config.end() && found->is_array() && !found->empty())
    if (found->front().is_string()) head = found->front().get<std::string>();
  if (holds(head, {"ForCTC", "ForRNNT", "Audio", "Speech"}) || holds(name, {"audio", "speech", "wav2vec", "whisper"}) ||
      has_key(config, {"num_mel_bins", "sampling_rate", "feat_extract_norm", "mask_time_length", "audio_channels"}))
    return kSound;
  const bool sees =
      holds(head, {"ForImage", "Vision", "ForObject", "ForSemantic", "ForDepth", "ForKeypoint", "ForVideo"}) ||
                    holds(name, {"vision", "_vit", "image"}) ||
                    has_key(config, {"image_size", "patch_size", "num_channels", "in_chans", "in_channels"});
  const bool reads = has_key(config, {"vocab_size"});
  // Beside a picture's sizes, words are another part, but for a class that sorts pictures: BEiT's words are of pictures.
  if (sees) return reads && !holds(head, {"ForImageClassification", "VisionModel"}) ? kParts : kPicture;
  if (holds(head, {"ForMaskedLM", "ForPreTraining"})) return kEncoder;
  if (has_key(config, {"encoder_layers", "num_encoder_layers", "num_decoder_layers"})) return kPair;
  if (const auto both = config.find("is_encoder_decoder"); both != config.end() && *both == true) return kPair;
  if (holds(head, {"ForCausalLM", "LMHeadModel"})) return kDecoder;
  return kUntold;
}

Nearest nearest_family(const nlohmann::json& config, std::string_view name) {
  Nearest best;
  std::tuple<std::size_t, std::size_t, std::size_t, std::ptrdiff_t, std::size_t> best_score;
  const ConfigKind kind = kind_of_config(config, name);
  for (const auto& [family_name, keys] : keys_by_family()) {
    Nearest one;
    one.family = &family_table().find(family_name)->second;
    if (!fits_kind(*one.family, kind)) continue;
    // Where nothing tells, pictures and sound are not guessed.
    if (!kind.known && (one.family->kind == FamilyKind::picture || one.family->kind == FamilyKind::sound)) continue;
    for (const auto& [key, value] : config.items())
      if (is_structural(key, value) && !keys.contains(key)) one.unread.push_back(key);
    for (const auto& [key, value] : one.family->defaults->items())
      if (is_structural(key, value) && (value.is_number() || value.is_object()) && !config.contains(key)) one.assumed.push_back(key);
    const std::size_t letters = common_letters(family_name, name);
    const std::size_t common = letters < kTelling ? 0 : letters;
    const std::tuple score(one.unread.size(), one.assumed.size(), name.size() - common, -followers(family_name),
                           one.family->settings.size());
    if (best.family && score >= best_score) continue;
    best = std::move(one);
    best_score = score;
  }
  // A config that says next to nothing is like every family of text.
  const bool text = !kind.known || kind.kind == FamilyKind::decoder;
  if (best.family && text && best.unread.empty() && !best.assumed.empty()) best.family = &family_table().find("llama")->second;
  // Neither words nor a head are told of, and there are sizes that no family of text knows: what it is stays open. A
  // config that is silent on most of a family's sizes (a network of convolutions), or knows more than a few others, is
  // of none.
  constexpr std::size_t kMostAssumed = 2, kMostUnread = 6;
  const bool vague = !kind.known && !config.contains("vocab_size") && !best.unread.empty();
  const bool silent = kind.known && kind.kind != FamilyKind::decoder && best.assumed.size() > kMostAssumed;
  if (vague || silent || best.unread.size() > kMostUnread) best.family = nullptr;
  return best;
}

}  // namespace turnpoint::huggingface
