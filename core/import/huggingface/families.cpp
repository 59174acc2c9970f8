// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/families.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/import/huggingface/family_table.h"
#include "core/import/huggingface/shape_reader.h"

namespace turnpoint {

namespace {

using namespace huggingface;

std::string first_architecture(const nlohmann::json& config) {
  const auto found = config.find("architectures");
  if (found == config.end() || !found->is_array() || found->empty() || !found->front().is_string()) return {};
  return found->front().get<std::string>();
}

/// What the config says it is, and the key that says so.
struct Named {
  const Family* family = nullptr;
  std::string name, key;
};

const Family* family_named(std::string_view name) {
  const auto found = family_table().find(name);
  return found == family_table().end() || name.starts_with("-") ? nullptr : &found->second;
}

Named find_family(JsonFields& fields) {
  Named named;
  if (fields.has("model_type")) {
    named.key = "model_type";
    named.name = fields.text(named.key);
    named.family = family_named(named.name);
    return named;
  }
  named.key = "architectures";
  named.name = first_architecture(fields.json());
  named.family = named.name.empty() ? nullptr : family_of_class(named.name);
  return named;
}

/// Models of text and something else keep the text model's settings in an object of their own.
constexpr const char* kNested[] = {"text_config", "llm_config", "language_config"};

}  // namespace

const std::vector<std::string>& huggingface_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, family] : family_table())
      if (!name.starts_with("-")) list.push_back(name);
    return list;
  }();
  return names;
}

Expected<TransformerShape> read_huggingface_config(JsonFields fields, std::string_view as) {
  if (fields.error()) return *fields.error();
  (void)as;
  Named named = find_family(fields);
  std::optional<JsonFields> nested;
  const char* nested_key = nullptr;
  for (const char* key : kNested) {
    if (nested_key || !fields.has(key) || !fields.json().find(key)->is_object()) continue;
    JsonFields inner = fields.object(key);
    const Named inner_named = find_family(inner);
    // An outer name that we know says what the inner object is, where that says nothing itself.
    if (!inner_named.family && (!inner_named.name.empty() || !named.family)) continue;
    if (inner_named.family) named = inner_named;
    nested = inner;
    nested_key = key;
  }
  if (fields.error()) return *fields.error();
  if (!named.family) {
    std::string known;
    for (const auto& name : huggingface_families()) known += (known.empty() ? "" : ", ") + name;
    if (named.name.empty())
      fields.fail("model_type",
                  "neither model_type nor architectures says which family this is; known families: " + known);
    else
      fields.fail(named.key, fmt::format("unknown family '{}'; known families: {}", named.name, known));
    return *fields.error();
  }
  ShapeReader reader(*named.family, nested ? *nested : fields, fields.json(), first_architecture(fields.json()));
  TransformerShape shape = reader.read();
  if (!fields.error() && !shape.fits(1, shape.default_sequence()))
    fields.fail("num_hidden_layers",
                fmt::format("{} layers of this width are too large even for one sample of {} tokens",
                            shape.layers + shape.encoder_layers, shape.default_sequence()));
  if (fields.error()) return *fields.error();
  if (nested_key)
    shape.warnings.push_back(fmt::format("only {} is read: the model's other parts are left out", nested_key));
  return shape;
}

}  // namespace turnpoint
