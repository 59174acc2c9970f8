// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/families.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/import/huggingface/family_table.h"
#include "core/import/huggingface/nearest.h"
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

/// Known by name only, to say why it cannot be read.
bool is_refused(const Family& family) {
  return std::any_of(family.refusals.begin(), family.refusals.end(),
                     [](const Refusal& one) { return one.condition == "true"; });
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
  // The files beside the checkpoints of Meta, Mistral and DeepSeek say sizes only.
  if (named.name.empty() && fields.has("dim") && fields.has("n_layers") && fields.has("n_heads")) {
    const char* row = fields.has("n_routed_experts") ? "-native_deepseek" : "-native_llama";
    named.family = &family_table().at(row);
    named.name = row;
  }
  return named;
}

constexpr const char* kRoad =
    "export the model to ONNX (torch.onnx.export), which needs no family: README.md, \"Models\"";
constexpr const char* kExport =
    "or export the model to ONNX (torch.onnx.export), which needs no family: README.md, \"Models\"";

std::string joined(const std::vector<std::string>& words) {
  constexpr std::size_t kShown = 6;
  std::string made;
  for (std::size_t i = 0; i < std::min(words.size(), kShown); ++i) made += (i ? ", " : "") + words[i];
  return words.size() > kShown ? made + fmt::format(" and {} more", words.size() - kShown) : made;
}

/// An unknown family as the nearest one, with a note, if nothing in the config speaks against it.
const Family* take_nearest(JsonFields& fields, const Named& named, std::vector<std::string>& notes) {
  const Nearest nearest = nearest_family(fields.json(), named.name);
  if (!nearest.family) {
    const ConfigKind kind = kind_of_config(fields.json(), named.name);
    const std::string what = !kind.known ? "and no family has keys like these"
                             : kind.kind == FamilyKind::other
                                 ? "and a model of several parts, of whose text nothing known is said, is like no family"
                                 : fmt::format("and no family of its kind ({}) has keys like these", kind.words);
    fields.fail(named.key, fmt::format("unknown family '{}', {}: {}", named.name, what, kRoad));
    return nullptr;
  }
  const std::string& as = nearest.family->name;
  if (nearest.agrees()) {
    notes.push_back(fmt::format("unknown family '{}', read like '{}', whose keys it has: parameters that no key speaks "
                                "of may be missing; choose another family by --as FAMILY",
                                named.name, as));
    return nearest.family;
  }
  const std::string why = !nearest.unread.empty()
                              ? fmt::format("which knows nothing of {}", joined(nearest.unread))
                              : fmt::format("which needs {}", joined(nearest.assumed));
  fields.fail(named.key, fmt::format("unknown family '{}'; the nearest is '{}', {}: read it so all the same by "
                                     "--as {} (config.json?as={}), {}",
                                     named.name, as, why, as, as, kExport));
  return nullptr;
}

/// Models of text and something else keep the text model's settings in an object of their own.
constexpr const char* kNested[] = {"text_config", "llm_config", "language_config"};

}  // namespace

const std::vector<std::string>& huggingface_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, family] : family_table())
      if (!name.starts_with("-") && !is_refused(family)) list.push_back(name);
    return list;
  }();
  return names;
}

Expected<TransformerShape> read_huggingface_config(JsonFields fields, std::string_view as) {
  if (fields.error()) return *fields.error();
  std::vector<std::string> notes;
  Named named = find_family(fields);
  const Family* forced = as.empty() ? nullptr : family_named(as);
  if (!as.empty() && !forced) {
    std::string known;
    for (const auto& name : huggingface_families()) known += (known.empty() ? "" : ", ") + name;
    return usage_error(fmt::format("--as '{}' names no known family; known are {}", as, known));
  }
  std::optional<JsonFields> nested;
  const char* nested_key = nullptr;
  for (const char* key : kNested) {
    if (nested_key || !fields.has(key) || !fields.json().find(key)->is_object()) continue;
    JsonFields inner = fields.object(key);
    const Named inner_named = find_family(inner);
    // An outer name that we know says what the inner object is, where that says nothing itself.
    if (!forced && !inner_named.family && (!inner_named.name.empty() || !named.family)) continue;
    // An encoder of text beside other parts stands for the whole only where the whole is to find words.
    const std::string_view ending = class_ending(first_architecture(fields.json()));
    const bool words =
        ending.empty() || ending == "ForMaskedLM" || ending == "ForCausalLM" || ending == "ForPreTraining";
    if (!forced && inner_named.family && inner_named.family->kind == FamilyKind::encoder && !words) continue;
    if (inner_named.family) named = inner_named;
    nested = inner;
    nested_key = key;
  }
  if (fields.error()) return *fields.error();
  if (forced) named.family = forced;
  if (!named.family && !named.name.empty() && !nested) named.family = take_nearest(fields, named, notes);
  if (!named.family) {
    fields.fail("model_type", fmt::format("neither model_type nor architectures says which family this is: name one by "
                                          "--as FAMILY (--as llama, config.json?as=llama, for a decoder with the usual "
                                          "keys), {}",
                                          kExport));
    return *fields.error();
  }
  if (is_refused(*named.family)) {
    fields.fail(named.key, fmt::format("'{}' is not supported: {}; {}", named.name,
                                       named.family->refusals.back().words, kRoad));
    return *fields.error();
  }
  ShapeReader reader(*named.family, nested ? *nested : fields, fields.json(), first_architecture(fields.json()));
  TransformerShape shape = reader.read();
  if (!fields.error() && !shape.fits(1, shape.default_sequence()))
    fields.fail("num_hidden_layers",
                fmt::format("{} layers of this width are too large even for one sample of {} tokens",
                            shape.layers + shape.encoder_layers, shape.default_sequence()));
  if (fields.error()) return *fields.error();
  shape.warnings.insert(shape.warnings.begin(), notes.begin(), notes.end());
  if (nested_key && !shape.hidden_key.empty()) shape.hidden_key = fmt::format("{}.{}", nested_key, shape.hidden_key);
  if (nested_key)
    shape.warnings.push_back(fmt::format("only {} is read: the model's other parts are left out", nested_key));
  return shape;
}

}  // namespace turnpoint
