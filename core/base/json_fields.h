// SPDX-License-Identifier: Apache-2.0
// Checked reading of the fields of one JSON object that somebody else wrote. The first thing that is wrong is kept as
// the error, with its place ("v100.json: device.memory_bytes"); later reads go on harmlessly, so a reader asks once at
// the end.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint {

class JsonFields {
 public:
  /// `object` must outlive this. `where` names the file. Anything but an object is an error at once.
  JsonFields(const nlohmann::json& object, std::string where);

  bool has(std::string_view key) const;  ///< present and not null

  /// Absent (or null) keys: an error if there is no default. NaN cannot be written in JSON; infinities (1e999),
  /// strings, fractions where whole numbers are due and values outside the range are errors that name the key.
  double number(std::string_view key, double minimum, double maximum, std::optional<double> otherwise = {});
  std::int64_t integer(std::string_view key, std::int64_t minimum, std::int64_t maximum,
                       std::optional<std::int64_t> otherwise = {});
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::optional<std::string> otherwise = {});

  /// A nested object; without the key, a reader of an empty object whose required fields are missing. Errors of nested
  /// readers arrive here too.
  JsonFields object(std::string_view key);
  /// An array's elements as readers; calls body(reader, index) for each, stops at the first error. Absent: no calls.
  template <class Body>
  void each(std::string_view key, Body&& body) {
    const std::size_t count = array_size(key);
    for (std::size_t i = 0; i < count && !error(); ++i) {
      JsonFields element = array_element(key, i);
      body(element, i);
    }
  }

  /// Reports a reason found by the caller, at `key` of this object.
  void fail(std::string_view key, std::string what);
  const std::optional<Error>& error() const { return *error_; }
  const nlohmann::json& json() const { return *object_; }

 private:
  JsonFields(const nlohmann::json& object, std::string where, std::string path,
             std::shared_ptr<std::optional<Error>> error);
  const nlohmann::json* find(std::string_view key) const;
  std::size_t array_size(std::string_view key);
  JsonFields array_element(std::string_view key, std::size_t index);
  std::string path_of(std::string_view key) const;

  const nlohmann::json* object_;
  std::string where_, path_;
  std::shared_ptr<std::optional<Error>> error_;
};

}  // namespace turnpoint
