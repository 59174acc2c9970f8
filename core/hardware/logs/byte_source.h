// SPDX-License-Identifier: Apache-2.0
// A file piece by piece, so that a log of any length needs no more memory than its longest line; gzip is undone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint::logs {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// The next piece, valid until the next call; empty at the end and after an error.
  virtual std::string_view next() = 0;
  /// Why the source ended early: a file that cannot be read further, a damaged or absurd gzip stream.
  const std::optional<Error>& error() const { return error_; }

 protected:
  std::optional<Error> error_;
};

/// A gzip stream that unpacks to more than this many times its size is refused once it has reached the size below:
/// logs and traces shrink to a tenth or a thirtieth, a file made to fill a machine to a thousandth.
inline constexpr std::size_t kMostGzipRatio = 250, kGzipRatioFrom = 64u << 20;

/// Opens a file; what begins like gzip is unpacked on the way. Bad input: no such file, a folder, not readable.
Expected<std::unique_ptr<ByteSource>> open_bytes(const std::string& path);

}  // namespace turnpoint::logs
