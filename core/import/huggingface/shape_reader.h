// SPDX-License-Identifier: Apache-2.0
// Reads one config as the transformer that a row of the table of families describes.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/json_fields.h"
#include "core/import/huggingface/expression.h"
#include "core/import/huggingface/family_table.h"
#include "core/import/transformer/transformer.h"

namespace turnpoint::huggingface {

class ShapeReader {
 public:
  static constexpr std::int64_t kMaximumLayers = 4096, kMaximumWidth = 1 << 22, kMaximumHeads = 1 << 16,
                                kMaximumExperts = 1 << 16, kMaximumVocabulary = 1 << 28,
                                kMaximumPositions = std::int64_t(1) << 31;

  /// `inner` holds the settings, `outer` the config around it whose word counts more where both speak (the same object
  /// where there is none around). `class_name` is the first of the architectures.
  ShapeReader(const Family& family, JsonFields inner, const nlohmann::json& outer, std::string class_name);

  /// Faults are left in the fields.
  TransformerShape read();

 private:
  Result evaluate_setting(std::string_view setting);
  Result evaluate_text(std::string_view expression);
  const nlohmann::json* key(std::string_view path, bool defaults) const;
  bool has(std::string_view setting) const { return family_.settings.find(setting) != family_.settings.end(); }
  void fail(std::string_view path, const std::string& what);
  bool good() const { return !fields_.error(); }

  /// 0 where the row or the config has none and `minimum` is 0; else "is missing".
  std::int64_t number(std::string_view setting, std::int64_t minimum, std::int64_t maximum);
  std::int64_t width(std::string_view setting) { return number(setting, 0, kMaximumWidth); }
  bool flag(std::string_view setting);
  std::string text(std::string_view setting);
  /// The position of the setting's word in `words`, separated by blanks.
  int choice(std::string_view setting, std::string_view words);
  std::string blamed(std::string_view setting);
  std::string filled(const std::string& words);

  void check_kinds();
  void read_sizes(TransformerShape& s);
  void read_structure(TransformerShape& s);
  void read_head(TransformerShape& s);
  void read_mixers(TransformerShape& s);
  void read_experts(TransformerShape& s);
  void read_layers(TransformerShape& s);
  void read_encoder(TransformerShape& s);
  void read_inputs(TransformerShape& s);
  void read_picture(TransformerShape& s);
  void check(TransformerShape& s);
  void note(TransformerShape& s);

  const Family& family_;
  JsonFields fields_;
  const nlohmann::json& outer_;
  std::string class_name_;
  Names names_;
  std::int64_t layer_ = -1;
  bool by_layer_ = false;  ///< whether what is being evaluated differs from layer to layer
  int depth_ = 0;
  std::map<std::string, Result, std::less<>> known_;
};

}  // namespace turnpoint::huggingface
