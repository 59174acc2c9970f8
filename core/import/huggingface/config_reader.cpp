// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/config_reader.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace turnpoint {

std::int64_t ConfigReader::integer(Keys keys, std::int64_t maximum, std::int64_t otherwise) {
  for (const auto key : keys)
    if (fields_.has(key)) return fields_.integer(key, 1, maximum);
  if (otherwise == 0) fields_.fail(*keys.begin(), "is missing");
  return otherwise;
}

std::int64_t ConfigReader::count(std::string_view key, std::int64_t maximum, std::int64_t otherwise) {
  return fields_.integer(key, 0, maximum, otherwise);
}

std::string ConfigReader::text(Keys keys, const char* otherwise) {
  for (const auto key : keys)
    if (fields_.has(key)) return fields_.text(key);
  return otherwise;
}

bool ConfigReader::is_null(std::string_view key) const {
  const auto found = fields_.json().find(key);
  return found != fields_.json().end() && found->is_null();
}

std::vector<std::int64_t> ConfigReader::layer_list(std::string_view key, std::int64_t layers) {
  std::vector<std::int64_t> list;
  if (!has(key)) return list;
  const auto& found = *fields_.json().find(key);
  if (!found.is_array()) return fail(key, "must be a list of layer numbers"), list;
  for (const auto& entry : found) {
    const bool whole = entry.is_number_unsigned() && entry.get<std::uint64_t>() < std::uint64_t(layers);
    if (!whole) return fail(key, fmt::format("must be a list of layer numbers below {}", layers)), list;
    list.push_back(entry.get<std::int64_t>());
  }
  return list;
}

void ConfigReader::vocabulary(TransformerShape& shape, std::int64_t words, std::int64_t positions, Keys position_keys) {
  shape.vocabulary = integer({"vocab_size"}, kMaximumVocabulary, words);
  shape.positions = integer(position_keys, kMaximumPositions, positions);
}

void ConfigReader::heads(TransformerShape& shape, Keys head_keys, std::int64_t default_heads,
                         std::int64_t default_kv_heads, std::int64_t default_head_channels) {
  shape.heads = integer(head_keys, kMaximumHeads, default_heads);
  // The family's number of key heads belongs to its number of heads; null says one for each.
  const bool fits = default_kv_heads > 0 && shape.heads % default_kv_heads == 0 && !is_null("num_key_value_heads");
  shape.kv_heads = integer({"num_key_value_heads"}, kMaximumHeads, fits ? default_kv_heads : shape.heads);
  if (has("head_dim"))
    shape.head_channels = integer({"head_dim"}, kMaximumWidth, 0);
  else
    shape.head_channels = default_head_channels;
  check_heads(shape, *head_keys.begin(), "num_key_value_heads");
}

void ConfigReader::check_heads(TransformerShape& shape, std::string_view head_key, std::string_view kv_key) {
  if (!good()) return;
  if (shape.heads % shape.kv_heads != 0)
    return fail(kv_key, fmt::format("{} does not divide the {} attention heads", shape.kv_heads, shape.heads));
  if (shape.head_channels > 0) return;
  if (shape.hidden % shape.heads != 0)
    return fail(head_key, fmt::format("{} heads do not divide the hidden size {}", shape.heads, shape.hidden));
  shape.head_channels = shape.hidden / shape.heads;
}

void ConfigReader::experts(TransformerShape& shape, Keys count_keys, std::int64_t default_count, Keys chosen_keys,
                           std::int64_t default_chosen) {
  shape.moe.experts = integer(count_keys, kMaximumExperts, default_count);
  shape.moe.per_token = integer(chosen_keys, kMaximumExperts, default_chosen);
  if (good() && shape.moe.per_token > shape.moe.experts)
    fail(*chosen_keys.begin(), fmt::format("{} experts per token of only {}", shape.moe.per_token, shape.moe.experts));
}

void ConfigReader::sliding_window(TransformerShape& shape, bool used) {
  if (!used || !has("sliding_window")) return;
  const std::int64_t window = integer({"sliding_window"}, kMaximumPositions, 0);
  if (good() && window < shape.default_sequence())
    shape.warnings.push_back(
        fmt::format("sliding_window {} is not modelled: attention is counted over the whole sequence", window));
}

}  // namespace turnpoint
