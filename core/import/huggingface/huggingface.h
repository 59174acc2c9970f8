// SPDX-License-Identifier: Apache-2.0
// Hugging Face config.json as a model source, from text.
#pragma once

#include <string>
#include <string_view>

#include "core/import/source/model_source.h"

namespace turnpoint {

/// `as` names the family whatever the config says ("llama"); empty: the config does. NaN and Infinity, which Python
/// writes, are allowed where nobody reads them. `path` names the source in messages and in the model; the model's name is the file's, or its folder's where the
/// file is called config.json.
Expected<ModelSourcePtr> parse_huggingface_config(std::string_view text, const std::string& path,
                                                  std::string_view as = {});

}  // namespace turnpoint
