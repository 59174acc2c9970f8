// SPDX-License-Identifier: Apache-2.0
// Hugging Face config.json as a model source, from text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/import/source/model_source.h"

namespace turnpoint {

/// `as` names the family whatever the config says ("llama"); empty: the config does. NaN and Infinity, which Python
/// writes, are allowed where nobody reads them. `path` names the source in messages and in the model; the model's name
/// is the file's, or its folder's where the file is called config.json. `hidden` takes the place of the config's hidden
/// size; 0: as the config has it. Usage error: there is none, or one that follows from other keys.
Expected<ModelSourcePtr> parse_huggingface_config(std::string_view text, const std::string& path,
                                                  std::string_view as = {}, std::int64_t hidden = 0);

/// What may stand behind a config's path: "?as=llama", "?hidden=2048", "?hidden=2048&as=llama".
struct ConfigChanges {
  std::string as;
  std::int64_t hidden = 0;

  bool any() const { return !as.empty() || hidden > 0; }
};
/// `text` behind the question mark; `whole` names the specification. nullopt: something else, which belongs to the
/// file's name. Usage error: a value that means nothing, or a key that is there twice.
Expected<std::optional<ConfigChanges>> read_config_changes(std::string_view text, const std::string& whole);
/// The inverse, question mark included; empty where nothing is changed.
std::string write_config_changes(const ConfigChanges& changes);
Expected<ModelSourcePtr> open_huggingface_config(const std::string& path, const ConfigChanges& changes);

}  // namespace turnpoint
