// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/import/source/model_source.h"

namespace turnpoint {

/// A TensorFlow graph that lies in memory, in either format; `name` stands for the file in messages. open_tensorflow()
/// maps a file and calls this.
Expected<ModelSourcePtr> open_tensorflow_bytes(std::span<const std::uint8_t> bytes, const std::string& name);

/// Whether a file's content is a TensorFlow graph: text or wire format, told from ONNX and JSON.
bool is_tensorflow(std::span<const std::uint8_t> bytes);

/// What a graph file holds, counted as written: for reports and tests.
struct TensorFlowCounts {
  std::size_t nodes = 0, inputs = 0, library_functions = 0, dangling_inputs = 0;
};
Expected<TensorFlowCounts> count_tensorflow(std::span<const std::uint8_t> bytes, const std::string& name);

}  // namespace turnpoint
