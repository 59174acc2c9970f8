// SPDX-License-Identifier: Apache-2.0
// A file mapped into memory for reading: pages that nobody reads are never loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/expected.h"

namespace turnpoint::onnx {

class MappedFile {
 public:
  static Expected<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  MappedFile() = default;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace turnpoint::onnx
