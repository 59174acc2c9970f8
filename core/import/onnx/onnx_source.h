// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/import/model_source.h"

namespace turnpoint {

/// An ONNX model that lies in memory; `name` stands for the file in messages. open_onnx() maps a file and calls this.
Expected<ModelSourcePtr> open_onnx_bytes(std::span<const std::uint8_t> bytes, const std::string& name);

}  // namespace turnpoint
