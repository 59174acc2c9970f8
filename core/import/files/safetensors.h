// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file, or of all files that a model.safetensors.index.json names. Only headers are read,
// never a weight. Format: 8 bytes of length, little-endian, then that many bytes of JSON: name to dtype, shape,
// offsets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint {

struct StoredTensor {
  std::string name, dtype;  ///< dtype as written: "BF16", "F8_E4M3"
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
};

/// Whether the bytes begin like a safetensors file: a length that the file has room for, then a JSON object.
bool is_safetensors(std::string_view bytes);
/// Bad input naming the tensor. Headers above 64 MiB and sums above 2^60 elements are refused.
Expected<std::vector<StoredTensor>> read_safetensors_header(std::string_view bytes, const std::string& path);
/// Whether JSON text is an index of such files ("weight_map").
bool is_safetensors_index(std::string_view text);
/// The tensors of all files that the index names; they lie beside it. Bad input where one is absent or lacks a tensor.
Expected<std::vector<StoredTensor>> read_safetensors_index(std::string_view text, const std::string& path);

/// What is trained among stored tensors: floating-point ones but for running statistics (`buffers`) and tables that
/// models store by habit (rotary frequencies, masks).
struct StoredCount {
  std::int64_t parameters = 0, buffers = 0;
  std::int64_t other = 0;                       ///< elements of integers: packed or quantised weights, positions
  std::map<std::string, std::int64_t> by_type;  ///< elements
};
StoredCount count_stored(const std::vector<StoredTensor>& tensors);

}  // namespace turnpoint
