// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/import/source/model_source.h"

namespace turnpoint {

/// An ONNX model that lies in memory; `name` stands for the file in messages. open_onnx() maps a file and calls this.
/// `buffers`: who wrote it knows which initialisers nothing trains, and that all inputs are data; without it both are
/// guessed.
Expected<ModelSourcePtr> open_onnx_bytes(std::span<const std::uint8_t> bytes, const std::string& name,
                                         const std::optional<std::set<std::string>>& buffers = std::nullopt);

}  // namespace turnpoint
