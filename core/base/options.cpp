// SPDX-License-Identifier: Apache-2.0
#include "core/base/options.h"

#include <fmt/format.h>
#include <cmath>

#include "core/base/text.h"

namespace turnpoint {

namespace {

std::string range_text(const OptionRecord& option) {
  if (option.type == OptionType::bytes)
    return fmt::format("--{} must be between {} and {}", option.key, format_bytes(std::llround(option.minimum)),
                       format_bytes(std::llround(option.maximum)));
  if (option.type == OptionType::integer)
    return fmt::format("--{} must be between {:.0f} and {:.0f}", option.key, option.minimum, option.maximum);
  return fmt::format("--{} must be between {:g} and {:g}", option.key, option.minimum, option.maximum);
}

}  // namespace

Expected<double> parse_option(const OptionRecord& option, std::string_view text) {
  const auto wrong = [&](std::string_view expected) {
    return usage_error(fmt::format("--{} expects {}, not '{}'", option.key, expected, text));
  };
  if (option.type == OptionType::choice) {
    std::string names;
    for (std::size_t i = 0; i < option.choices.size(); ++i) {
      if (option.choices[i] == text) return static_cast<double>(i);
      names += (i ? ", " : "") + std::string(option.choices[i]);
    }
    return wrong("one of " + names);
  }
  if (option.type == OptionType::flag) {
    if (text == "true" || text == "1" || text == "on") return 1.0;
    if (text == "false" || text == "0" || text == "off") return 0.0;
    return wrong("true or false");
  }
  if (option.type == OptionType::bytes) {
    const auto bytes = parse_bytes(text);
    if (!bytes) return wrong("bytes such as 16GiB");
    const auto value = static_cast<double>(*bytes);
    if (option.maximum > option.minimum && (value < option.minimum || value > option.maximum))
      return usage_error(range_text(option) + fmt::format(", not {}", text));
    return value;
  }
  const auto value = parse_double(text);
  if (!value) return wrong("a number");
  if (option.type == OptionType::integer && *value != std::floor(*value)) return wrong("a whole number");
  if (*value < option.minimum || *value > option.maximum)
    return usage_error(range_text(option) + fmt::format(", not {}", text));
  return *value;
}

std::string format_option(const OptionRecord& option, double value) {
  switch (option.type) {
    case OptionType::choice: {
      const bool known = value >= 0 && value < static_cast<double>(option.choices.size());
      return known ? std::string(option.choices[static_cast<std::size_t>(value)]) : std::string();
    }
    case OptionType::flag: return value != 0 ? "true" : "false";
    case OptionType::integer:
    case OptionType::bytes: return fmt::format("{:.0f}", value);
    case OptionType::real: return fmt::format("{}", value);
  }
  return {};
}

std::string format_parameters(std::span<const OptionRecord> options, std::span<const double> values) {
  std::string text;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (values[i] == options[i].default_value) continue;
    text += (text.empty() ? "" : ":") + std::string(options[i].key);
    if (options[i].type != OptionType::flag) text += '=' + format_option(options[i], values[i]);
  }
  return text;
}

std::optional<std::vector<double>> parse_parameters(std::span<const OptionRecord> options, std::string_view text) {
  std::vector<double> values;
  for (const OptionRecord& option : options) values.push_back(option.default_value);
  if (text.empty()) return values;
  for (const std::string_view part : split(text, ':')) {
    const std::string_view key = part.substr(0, part.find('='));
    const auto option = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.key == key; });
    if (option == options.end()) return std::nullopt;
    double& value = values[std::size_t(option - options.begin())];
    if (key.size() == part.size()) {
      // "recompute" alone is the most of it.
      value = option->type == OptionType::choice ? double(option->choices.size()) - 1 : 1;
      continue;
    }
    const auto read = parse_option(*option, part.substr(key.size() + 1));
    if (!read) return std::nullopt;
    value = *read;
  }
  return values;
}

}  // namespace turnpoint
