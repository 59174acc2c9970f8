// SPDX-License-Identifier: Apache-2.0
// What a file is that no importer reads, told by its first bytes (archives: by the names inside, JSON: by its keys),
// and what to open in its place. Nothing is unpacked or executed; names are read from at most 4 MiB at either end.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint {

struct ForeignKind {
  std::string what;     ///< "a GGUF file: quantised weights for inference"
  std::string way_out;  ///< "open the config.json of the model that it was made from"
};

/// Nothing where the bytes are no kind that is known here. `bytes` is the whole file.
std::optional<ForeignKind> foreign_kind(std::string_view bytes);
/// Bad input in one sentence: "x.gguf: is a GGUF file ... (open the config.json ...)".
Error foreign_error(const ForeignKind& kind, const std::string& path);

}  // namespace turnpoint
