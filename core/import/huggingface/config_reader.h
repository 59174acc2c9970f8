// SPDX-License-Identifier: Apache-2.0
// Reads one config.json with the spellings of several library versions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_fields.h"
#include "core/import/transformer/transformer.h"

namespace turnpoint {

class ConfigReader {
 public:
  using Keys = std::initializer_list<std::string_view>;
  static constexpr std::int64_t kMaximumLayers = 4096, kMaximumWidth = 1 << 22, kMaximumHeads = 1 << 16,
                                kMaximumExperts = 1 << 16, kMaximumVocabulary = 1 << 28,
                                kMaximumPositions = std::int64_t(1) << 31;

  explicit ConfigReader(JsonFields fields) : fields_(std::move(fields)) {}

  /// The first of `keys` that is there; a default of 0 means that the family has none.
  std::int64_t integer(Keys keys, std::int64_t maximum, std::int64_t otherwise);
  /// Also 0 is allowed, which an absent key stands for.
  std::int64_t count(std::string_view key, std::int64_t maximum, std::int64_t otherwise);
  std::int64_t width(Keys keys, std::int64_t otherwise) { return integer(keys, kMaximumWidth, otherwise); }
  std::int64_t layers(Keys keys, std::int64_t otherwise) { return integer(keys, kMaximumLayers, otherwise); }
  std::string text(Keys keys, const char* otherwise);
  bool flag(std::string_view key, bool otherwise) { return fields_.flag(key, otherwise); }
  bool has(std::string_view key) const { return fields_.has(key); }
  /// Written as null, which some keys distinguish from being left out.
  bool is_null(std::string_view key) const;
  /// A list of layer numbers below `layers`; no list is an empty one.
  std::vector<std::int64_t> layer_list(std::string_view key, std::int64_t layers);
  void fail(std::string_view key, std::string what) { fields_.fail(key, std::move(what)); }
  bool good() const { return !fields_.error(); }
  JsonFields& fields() { return fields_; }
  /// A nested object with settings of its own; empty where the key is absent.
  ConfigReader object(std::string_view key) { return ConfigReader(fields_.object(key)); }

  /// vocab_size and max_position_embeddings (or `position_keys`).
  void vocabulary(TransformerShape& shape, std::int64_t words, std::int64_t positions,
                  Keys position_keys = {"max_position_embeddings"});
  /// Heads, shared keys and the channels of a head; the divisions must come out even.
  void heads(TransformerShape& shape, Keys head_keys, std::int64_t default_heads, std::int64_t default_kv_heads = 0,
             std::int64_t default_head_channels = 0);
  /// Key heads set by the caller, who names the key to blame.
  void check_heads(TransformerShape& shape, std::string_view head_key, std::string_view kv_key);
  /// Experts and how many of them a token uses.
  void experts(TransformerShape& shape, Keys count_keys, std::int64_t default_count, Keys chosen_keys,
               std::int64_t default_chosen);
  /// Full attention is what the graph holds; a window would make the scores smaller.
  void sliding_window(TransformerShape& shape, bool used);

 private:
  JsonFields fields_;
};

}  // namespace turnpoint
