// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/huggingface.h"

#include <fmt/format.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/import/huggingface/families.h"
#include "core/import/huggingface/shape_reader.h"
#include "core/import/huggingface/text_checks.h"
#include "core/import/source/hidden_size.h"

namespace turnpoint {

namespace {

std::string name_of(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string folder = file.parent_path().filename().string();
  return file.filename() == "config.json" && !folder.empty() ? folder : file.stem().string();
}

class ConfigSource final : public ModelSource, public HiddenSize {
 public:
  ConfigSource(TransformerShape shape, StatedDefaults stated, const std::string& path, ConfigChanges changes,
               std::string others)
      : shape_(std::move(shape)),
        stated_(std::move(stated)),
        name_(name_of(path)),
        path_(path),
        changes_(std::move(changes)),
        others_(std::move(others)) {}
  std::string name() const override { return name_; }
  std::string source() const override { return path_ + write_config_changes(changes_); }
  std::int64_t hidden() const override { return shape_.hidden_key.empty() ? 0 : shape_.hidden; }
  std::string with_hidden(std::int64_t channels) const override {
    return path_ + write_config_changes({changes_.as, channels});
  }
  std::string others() const override { return others_; }
  StatedDefaults stated() const override { return stated_; }
  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    const std::int64_t batch = binding.batch ? binding.batch : kDefaultBatch;
    return build_transformer(shape_, name_, source(), batch,
                             binding.sequence ? binding.sequence : shape_.default_sequence());
  }

 private:
  TransformerShape shape_;
  StatedDefaults stated_;
  std::string name_, path_;
  ConfigChanges changes_;
  std::string others_;
};

/// The type that a config of one model, or of several parts, names: of the whole before that of its text part.
StatedDefaults stated_by(const nlohmann::json& document, const TransformerShape& shape) {
  StatedDefaults stated;
  stated.sequence_reason = shape.default_sequence_reason();
  stated.names_sequence = shape.positions_named;
  const auto look = [&](const nlohmann::json& object) {
    for (const char* key : {"torch_dtype", "dtype"}) {
      const auto found = object.is_object() ? object.find(key) : object.end();
      if (stated.precision || !object.is_object() || found == object.end() || !found->is_string()) continue;
      const auto name = found->get<std::string>();
      stated.precision = stated_precision(name);
      if (stated.precision) stated.precision_reason = precision_reason(key, name);
    }
  };
  look(document);
  for (const char* part : {"text_config", "llm_config", "language_config"})
    if (const auto found = document.find(part); found != document.end()) look(*found);
  return stated;
}

/// Files of ours that are no models say what they are.
std::optional<Error> another_format(const nlohmann::json& document, const std::string& path) {
  const auto found = document.is_object() ? document.find("format") : document.end();
  if (!document.is_object() || found == document.end() || !found->is_string()) return std::nullopt;
  const auto format = found->get<std::string>();
  if (!format.starts_with("turnpoint/")) return std::nullopt;
  return bad_input("is a " + format.substr(0, 60) + " file, which is no model", path);
}

/// Where the config has its hidden size, by TransformerShape::hidden_key, which is not empty.
nlohmann::json& hidden_in(nlohmann::json& document, std::string_view key) {
  nlohmann::json* object = &document;
  for (std::size_t dot; (dot = key.find('.')) != std::string_view::npos; key.remove_prefix(dot + 1))
    object = &(*object)[std::string(key.substr(0, dot))];
  return (*object)[std::string(key)];
}

/// The config with another hidden size: the key that the family reads it from says so.
Expected<TransformerShape> with_hidden_size(nlohmann::json& document, const TransformerShape& before,
                                            const std::string& path, std::string_view as, std::int64_t hidden) {
  if (before.hidden_key.empty()) return usage_error("has no key of its own for the hidden size", path);
  hidden_in(document, before.hidden_key) = hidden;
  return read_huggingface_config(JsonFields(document, path), as);
}

}  // namespace

Expected<std::optional<ConfigChanges>> read_config_changes(std::string_view text, const std::string& whole) {
  ConfigChanges changes;
  for (const auto part : split(text, '&')) {
    if (part.starts_with("as=")) {
      if (!changes.as.empty()) return usage_error("names its family twice", whole);
      changes.as = part.substr(3);
      if (changes.as.empty()) return usage_error("?as= names no family", whole);
    } else if (part.starts_with("hidden=")) {
      if (changes.hidden > 0) return usage_error("names its hidden size twice", whole);
      const auto value = parse_int(part.substr(7));
      if (!value || *value < 1 || *value > ShapeReader::kMaximumWidth)
        return usage_error(fmt::format("hidden must be a whole number between 1 and {}, not '{}'",
                                       ShapeReader::kMaximumWidth, part.substr(7)),
                           whole);
      changes.hidden = *value;
    } else {
      return std::optional<ConfigChanges>();
    }
  }
  return std::optional(std::move(changes));
}

std::string write_config_changes(const ConfigChanges& changes) {
  std::string text;
  if (changes.hidden > 0) text += fmt::format("?hidden={}", changes.hidden);
  if (!changes.as.empty()) text += fmt::format("{}as={}", text.empty() ? "?" : "&", changes.as);
  return text;
}

Expected<ModelSourcePtr> parse_huggingface_config(std::string_view given, const std::string& path, std::string_view as,
                                                  std::int64_t hidden) {
  const std::string text = quote_non_numbers(given);
  if (auto fault = find_json_fault(text, path)) return *fault;
  auto document = parse_json(text, path);
  if (!document) return document.error();
  if (auto other = another_format(*document, path)) return *other;
  auto shape = read_huggingface_config(JsonFields(*document, path), as);
  if (shape && hidden > 0) shape = with_hidden_size(*document, *shape, path, as, hidden);
  if (!shape) return shape.error();
  StatedDefaults stated = stated_by(*document, *shape);
  if (!shape->hidden_key.empty()) hidden_in(*document, shape->hidden_key) = 0;
  std::string others = document->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return ModelSourcePtr(std::make_shared<ConfigSource>(std::move(*shape), std::move(stated), path,
                                                       ConfigChanges{std::string(as), hidden}, std::move(others)));
}

Expected<ModelSourcePtr> open_huggingface_config(const std::string& path, const std::string& as) {
  return open_huggingface_config(path, ConfigChanges{as, 0});
}

Expected<ModelSourcePtr> open_huggingface_config(const std::string& path, const ConfigChanges& changes) {
  constexpr std::size_t kLargestConfig = std::size_t(4) << 20;
  const auto text = read_file(path, kLargestConfig);
  if (!text) return text.error();
  return parse_huggingface_config(*text, path, changes.as, changes.hidden);
}

}  // namespace turnpoint
