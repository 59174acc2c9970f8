// SPDX-License-Identifier: Apache-2.0
// The families of models as data. Each row says how the settings of a transformer follow from the keys of a config, in
// the language of expression.h; it begins where another row ends.
//
//   setting = expression         a field of TransformerShape, see shape_reader.cpp
//   key := value                 what the library takes for a key that a config leaves out, as JSON
//   refuse key: condition: words configs that the graph cannot stand for
//   note: condition: words       said beside the model
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace turnpoint::huggingface {

/// A row as it is written.
struct FamilyRow {
  const char* name;   ///< as `model_type` spells it
  const char* begin;  ///< what the names of its classes begin with ("Llama"); several with blanks between
  const char* like;   ///< the row that this one differs from; empty: none
  const char* text;
};

struct Refusal {
  std::string key, condition, words;
};

/// What a model reads and makes; `other` holds several at once, or nothing tells.
enum class FamilyKind : std::uint8_t { decoder, encoder, pair, picture, sound, other };

/// A row with all that it takes from others.
struct Family {
  FamilyKind kind = FamilyKind::decoder;
  std::string name;
  std::vector<std::string> begins;
  std::string like;
  std::map<std::string, std::string, std::less<>> settings;
  std::shared_ptr<const nlohmann::json> defaults;  ///< nested as in a config; never null
  std::vector<Refusal> refusals, notes;
};

/// All families by name. Names that begin with '-' are no families but what several rows share.
const std::map<std::string, Family, std::less<>>& family_table();

/// What a class name ends with, after the family's part: "ForCausalLM", "LMHeadModel", "Model"; empty: unknown.
std::string_view class_ending(std::string_view class_name);
/// The family whose classes begin so; nullptr: none.
const Family* family_of_class(std::string_view class_name);
/// The value at a dotted path; nullptr where there is none.
const nlohmann::json* find_path(const nlohmann::json& object, std::string_view path);

/// Keys and values as in a row.
struct FamilyDefaults {
  const char* name;
  const char* text;
};
std::vector<FamilyDefaults> defaults_1();
std::vector<FamilyDefaults> defaults_2();

// The rows, by kind.
std::vector<FamilyRow> classic_rows();
std::vector<FamilyRow> rotary_rows();
std::vector<FamilyRow> expert_rows();
std::vector<FamilyRow> latent_rows();
std::vector<FamilyRow> state_rows();
std::vector<FamilyRow> encoder_rows();
std::vector<FamilyRow> pair_rows();
std::vector<FamilyRow> media_rows();

}  // namespace turnpoint::huggingface
