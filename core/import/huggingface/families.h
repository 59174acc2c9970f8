// SPDX-License-Identifier: Apache-2.0
// What a config.json says, as a transformer; each family has its own key names and defaults.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/json_fields.h"
#include "core/import/transformer/transformer.h"

namespace turnpoint {

/// Names of the families, as `model_type` spells them.
const std::vector<std::string>& huggingface_families();

/// Reads and checks a config. `fields` names file and key in every message.
/// `as` names the family whatever the config says; empty: the config does. The error of an unknown family says
/// "config.json?as=NEAREST", which the window offers on a button.
Expected<TransformerShape> read_huggingface_config(JsonFields fields, std::string_view as = {});

}  // namespace turnpoint
