// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/huggingface.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json.h"
#include "core/import/huggingface/families.h"
#include "core/import/huggingface/text_checks.h"

namespace turnpoint {

namespace {

class ConfigSource final : public ModelSource {
 public:
  ConfigSource(TransformerShape shape, StatedDefaults stated, std::string name, std::string path)
      : shape_(std::move(shape)), stated_(std::move(stated)), name_(std::move(name)), path_(std::move(path)) {}
  std::string name() const override { return name_; }
  std::string source() const override { return path_; }
  StatedDefaults stated() const override { return stated_; }
  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    const std::int64_t batch = binding.batch ? binding.batch : kDefaultBatch;
    return build_transformer(shape_, name_, path_, batch,
                             binding.sequence ? binding.sequence : shape_.default_sequence());
  }

 private:
  TransformerShape shape_;
  StatedDefaults stated_;
  std::string name_, path_;
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

std::string name_of(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string folder = file.parent_path().filename().string();
  return file.filename() == "config.json" && !folder.empty() ? folder : file.stem().string();
}

/// Files of ours that are no models say what they are.
std::optional<Error> another_format(const nlohmann::json& document, const std::string& path) {
  const auto found = document.is_object() ? document.find("format") : document.end();
  if (!document.is_object() || found == document.end() || !found->is_string()) return std::nullopt;
  const auto format = found->get<std::string>();
  if (!format.starts_with("turnpoint/")) return std::nullopt;
  return bad_input("is a " + format.substr(0, 60) + " file, which is no model", path);
}

}  // namespace

Expected<ModelSourcePtr> parse_huggingface_config(std::string_view given, const std::string& path,
                                                  std::string_view as) {
  const std::string text = quote_non_numbers(given);
  if (auto fault = find_json_fault(text, path)) return *fault;
  const auto document = parse_json(text, path);
  if (!document) return document.error();
  if (auto other = another_format(*document, path)) return *other;
  auto shape = read_huggingface_config(JsonFields(*document, path), as);
  if (!shape) return shape.error();
  StatedDefaults stated = stated_by(*document, *shape);
  return ModelSourcePtr(std::make_shared<ConfigSource>(std::move(*shape), std::move(stated), name_of(path),
                                                       as.empty() ? path : path + "?as=" + std::string(as)));
}

Expected<ModelSourcePtr> open_huggingface_config(const std::string& path, const std::string& as) {
  constexpr std::size_t kLargestConfig = std::size_t(4) << 20;
  const auto text = read_file(path, kLargestConfig);
  if (!text) return text.error();
  return parse_huggingface_config(*text, path, as);
}

}  // namespace turnpoint
