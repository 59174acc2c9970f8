// SPDX-License-Identifier: Apache-2.0
// What the readers of protocol buffer files share: one error with its place, a bound on memory, names fit for messages.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/expected.h"
#include "core/import/onnx/wire_reader.h"

namespace turnpoint::onnx {

/// Valid UTF-8 without control characters and at most `longest` bytes; anything else becomes '?', so that a name can go
/// into messages and JSON.
std::string clean_name(std::string_view text, std::size_t longest);

class MessageParser {
 public:
  /// `longest_name` in bytes; `without` completes "the graph is larger than 128 MB without its ...".
  MessageParser(std::string file, std::size_t longest_name, const char* without)
      : file_(std::move(file)), longest_name_(longest_name), without_(without) {}

  std::optional<Error> error;  ///< the first one; everything stops there

 protected:
  using Bytes = std::span<const std::uint8_t>;
  static constexpr std::size_t kMaxMemory = std::size_t{128}
                                            << 20;  ///< of parsed messages: a hostile file has one per two bytes

  void fail(std::string what) {
    if (!error) error = bad_input(std::move(what), place_.empty() ? file_ : file_ + ": " + place_);
  }
  bool charge(std::size_t bytes) {
    memory_ += bytes;
    if (memory_ > kMaxMemory) fail(std::string("the graph is larger than 128 MB without its ") + without_);
    return !error;
  }
  template <class Use>
  void each(Bytes bytes, const char* what, Use&& use) {
    WireReader reader(bytes);
    while (!error && reader.next()) use(reader);
    if (reader.broken()) fail(std::string("the file is damaged or truncated (in a ") + what + " message)");
  }
  std::string clean(std::string_view text) const { return clean_name(text, longest_name_); }
  std::string name(const WireReader& reader) {
    charge(32 + std::min(reader.bytes().size(), longest_name_));
    return clean(reader.text());
  }

  std::string file_, place_;

 private:
  std::size_t longest_name_, memory_ = 0;
  const char* without_;
};

}  // namespace turnpoint::onnx
