// SPDX-License-Identifier: Apache-2.0
// JSON of any length, value by value: nothing is kept but where in the document the parser stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/expected.h"
#include "core/hardware/logs/byte_source.h"

namespace turnpoint::logs {

/// What a reader of a long document hears. `depth` counts the objects and lists around a value: a member of the
/// outermost object has depth 1.
class JsonListener {
 public:
  virtual ~JsonListener() = default;
  virtual void begin(int depth, const std::string& key, bool list) = 0;  ///< an object or a list, under its key
  virtual void end(int depth, bool list) = 0;
  virtual void number(int depth, const std::string& key, double value) = 0;
  virtual void text(int depth, const std::string& key, const std::string& value) = 0;
};

/// Bad input: not JSON, deeper than 64, one string of more than 16 MiB, or what the source says.
Expected<void> stream_json(ByteSource& source, const std::string& where, JsonListener& listener);

/// A text in memory as a source; it must outlive the source.
std::unique_ptr<ByteSource> text_source(std::string_view text);

}  // namespace turnpoint::logs
