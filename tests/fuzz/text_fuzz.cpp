// SPDX-License-Identifier: Apache-2.0
// The readers of core/base: JSON, numbers, byte counts, options. Besides not crashing, what is read must stay what it
// is when it is written and read again.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/json.h"
#include "core/base/options.h"
#include "core/base/text.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "hf_config:problems:text"; }

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace turnpoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto value = parse_json(text, "input")) {
    const auto again = parse_json(value->dump(), "again");
    require(again.has_value() && *again == *value);
  } else {
    require(!value.error().what.empty());
  }

  const std::string_view word = text.substr(0, 40);
  if (const auto bytes = parse_bytes(word)) {
    require(*bytes >= 0 && *bytes <= std::int64_t(1) << 62);
    require(parse_bytes(format_bytes(*bytes)).has_value());
  }
  if (const auto number = parse_double(word)) require(std::isfinite(*number));
  const OptionRecord scale{"scale", "Scale", "", OptionType::real, 0.01, 1, 100, {}, {}};
  if (const auto value = parse_option(scale, word)) {
    require(*value >= 0.01 && *value <= 100);
    require(*parse_option(scale, format_option(scale, *value)) == *value);
  }
  const auto parts = split(text, ',');
  std::size_t total = parts.size() - 1;
  for (const auto part : parts) total += part.size();
  require(total == text.size());
  return 0;
}
