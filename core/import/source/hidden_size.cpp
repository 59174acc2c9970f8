// SPDX-License-Identifier: Apache-2.0
#include "core/import/source/hidden_size.h"

namespace turnpoint {

Expected<const HiddenSize*> hidden_size_of(const ModelSource& source) {
  const auto* sized = dynamic_cast<const HiddenSize*>(&source);
  if (!sized)
    return usage_error("has sizes that its file fixes; built-in networks and config.json files have a hidden size",
                       source.source());
  if (sized->hidden() <= 0) return usage_error("has no hidden size", source.source());
  return sized;
}

}  // namespace turnpoint
