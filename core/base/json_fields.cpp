// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_fields.h"

#include <fmt/format.h>
#include <cmath>
#include <nlohmann/json.hpp>

namespace turnpoint {

namespace {

const nlohmann::json& empty_object() {
  static const nlohmann::json empty = nlohmann::json::object();
  return empty;
}

const char* kind_of(const nlohmann::json& value) {
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "true or false";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_number_integer()) return "a whole number";
  if (value.is_number()) return "a number with a fraction";
  return "null";
}

}  // namespace

JsonFields::JsonFields(const nlohmann::json& object, std::string where)
    : JsonFields(object, std::move(where), {}, std::make_shared<std::optional<Error>>()) {}

JsonFields::JsonFields(const nlohmann::json& object, std::string where, std::string path,
                       std::shared_ptr<std::optional<Error>> error)
    : object_(&object), where_(std::move(where)), path_(std::move(path)), error_(std::move(error)) {
  if (object.is_object()) return;
  if (!*error_)
    *error_ = bad_input(fmt::format("must be an object, not {}", kind_of(object)),
                        path_.empty() ? where_ : where_ + ": " + path_);
  object_ = &empty_object();
}

const nlohmann::json* JsonFields::find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::has(std::string_view key) const { return find(key) != nullptr; }

std::string JsonFields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void JsonFields::fail(std::string_view key, std::string what) {
  if (!*error_) *error_ = bad_input(std::move(what), where_ + ": " + path_of(key));
}

double JsonFields::number(std::string_view key, double minimum, double maximum, std::optional<double> otherwise) {
  const double fallback = otherwise.value_or(minimum);
  const nlohmann::json* value = find(key);
  if (!value) {
    if (!otherwise) fail(key, "is missing");
    return fallback;
  }
  if (!value->is_number()) {
    fail(key, fmt::format("must be a number, not {}", kind_of(*value)));
    return fallback;
  }
  const double result = value->get<double>();
  if (!std::isfinite(result) || result < minimum || result > maximum) {
    fail(key, fmt::format("must be between {:g} and {:g}, not {}", minimum, maximum, value->dump()));
    return fallback;
  }
  return result;
}

std::int64_t JsonFields::integer(std::string_view key, std::int64_t minimum, std::int64_t maximum,
                                 std::optional<std::int64_t> otherwise) {
  const std::int64_t fallback = otherwise.value_or(minimum);
  const nlohmann::json* value = find(key);
  if (!value) {
    if (!otherwise) fail(key, "is missing");
    return fallback;
  }
  // 1e9 and 4096.0 are whole numbers too; doubles are exact far beyond any maximum we use.
  const double real = value->is_number() ? value->get<double>() : 0;
  if (!value->is_number() || real != std::floor(real)) {
    fail(key, fmt::format("must be a whole number, not {}", kind_of(*value)));
    return fallback;
  }
  const bool fits_64 =
      value->is_number_unsigned() ? value->get<std::uint64_t>() <= std::uint64_t(INT64_MAX) : std::abs(real) < 9.2e18;
  const std::int64_t result = !fits_64                     ? 0
                              : value->is_number_integer() ? value->get<std::int64_t>()
                                                           : static_cast<std::int64_t>(real);
  if (!fits_64 || result < minimum || result > maximum) {
    fail(key, fmt::format("must be between {} and {}, not {}", minimum, maximum, value->dump()));
    return fallback;
  }
  return result;
}

bool JsonFields::flag(std::string_view key, bool otherwise) {
  const nlohmann::json* value = find(key);
  if (!value) return otherwise;
  if (!value->is_boolean()) {
    fail(key, fmt::format("must be true or false, not {}", kind_of(*value)));
    return otherwise;
  }
  return value->get<bool>();
}

std::string JsonFields::text(std::string_view key, std::optional<std::string> otherwise) {
  const nlohmann::json* value = find(key);
  if (!value) {
    if (!otherwise) fail(key, "is missing");
    return otherwise.value_or(std::string());
  }
  if (!value->is_string()) {
    fail(key, fmt::format("must be a string, not {}", kind_of(*value)));
    return otherwise.value_or(std::string());
  }
  return value->get<std::string>();
}

JsonFields JsonFields::object(std::string_view key) {
  const nlohmann::json* value = find(key);
  return JsonFields(value ? *value : empty_object(), where_, path_of(key), error_);
}

std::size_t JsonFields::array_size(std::string_view key) {
  const nlohmann::json* value = find(key);
  if (!value) return 0;
  if (!value->is_array()) {
    fail(key, fmt::format("must be a list, not {}", kind_of(*value)));
    return 0;
  }
  return value->size();
}

JsonFields JsonFields::array_element(std::string_view key, std::size_t index) {
  return JsonFields((*find(key))[index], where_, fmt::format("{}[{}]", path_of(key), index), error_);
}

}  // namespace turnpoint
