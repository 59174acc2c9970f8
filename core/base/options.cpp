// SPDX-License-Identifier: Apache-2.0
#include "core/base/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cassert>
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

/// An integer whose least value has a word.
bool has_word(const OptionRecord& option) { return option.type == OptionType::integer && !option.choices.empty(); }

/// A default that a text leaves out because it is nothing: "none", "0".
bool stands_for_nothing(const OptionRecord& option, std::size_t choice) {
  return option.type == OptionType::choice && double(choice) == option.default_value &&
         (option.choices[choice] == "none" || option.choices[choice] == "0");
}

/// The choices as people are told of them: the default last, or not at all.
std::vector<std::string_view> written_choices(const OptionRecord& option) {
  std::vector<std::string_view> written(option.choices.begin(), option.choices.end());
  const auto usual = written.begin() + std::ptrdiff_t(option.default_value);
  const bool nothing = stands_for_nothing(option, std::size_t(option.default_value));
  std::rotate(usual, usual + 1, written.end());
  if (nothing) written.pop_back();
  return written;
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
  if (has_word(option) && text == option.choices.front()) return option.minimum;
  const auto value = parse_double(text);
  if (!value) return wrong(has_word(option) ? fmt::format("a number or {}", option.choices.front()) : "a number");
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
      if (has_word(option) && value == option.minimum) return std::string(option.choices.front());
      [[fallthrough]];
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
  const auto read = read_parameters("this", options, text);
  return read ? std::optional(read->values()) : std::nullopt;
}

std::size_t Parameters::index(std::string_view key) const {
  const auto option = std::find_if(options_.begin(), options_.end(), [&](const auto& one) { return one.key == key; });
  assert(option != options_.end());
  return std::size_t(option - options_.begin());
}

double Parameters::number(std::string_view key) const { return values_[index(key)]; }

std::string_view Parameters::choice(std::string_view key) const {
  const std::size_t at = index(key);
  return options_[at].choices[std::size_t(values_[at])];
}

Expected<Parameters> read_parameters(std::string_view whose, std::span<const OptionRecord> options,
                                     std::string_view text) {
  std::vector<double> values;
  for (const OptionRecord& option : options) values.push_back(option.default_value);
  std::vector<bool> written(options.size());
  if (text.empty()) return Parameters(options, std::move(values), std::move(written));
  for (const std::string_view part : split(text, ':')) {
    const std::string_view key = part.substr(0, part.find('='));
    const auto option = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.key == key; });
    const bool alone = key.size() == part.size();
    const bool flag = option != options.end() && option->type == OptionType::flag;
    const bool most =
        option != options.end() && option->type == OptionType::choice && option->choices.front() == "none";
    if (option == options.end() || (alone && !flag && !most)) {
      const auto known = parameter_words(options);
      return usage_error(fmt::format("{} knows the parameters {}{}{}, not '{}'", whose,
                                     fmt::join(known.begin(), known.end() - 1, ", "), known.size() > 1 ? " and " : "",
                                     known.back(), part));
    }
    const auto at = std::size_t(option - options.begin());
    if (written[at]) return usage_error(fmt::format("{} has the parameter '{}' twice", whose, key));
    written[at] = true;
    double& value = values[at];
    if (alone) {
      value = flag ? 1 : double(option->choices.size()) - 1;
      continue;
    }
    const std::string_view said = part.substr(key.size() + 1);
    if (flag)
      return usage_error(
          fmt::format("{}: {} is on where it is written and takes no value, such as '{}'", whose, key, said));
    const auto read = parse_option(*option, said);
    if (!read) return usage_error(fmt::format("{}: {}", whose, read.error().what.substr(2)));  // without its dashes
    value = *read;
  }
  return Parameters(options, std::move(values), std::move(written));
}

std::vector<std::string> parameter_words(std::span<const OptionRecord> options) {
  std::vector<std::string> words;
  for (const OptionRecord& option : options) {
    std::string word(option.key);
    switch (option.type) {
      case OptionType::flag: break;
      case OptionType::choice: word += fmt::format("={}", fmt::join(written_choices(option), "|")); break;
      case OptionType::integer: word += has_word(option) ? fmt::format("=N|{}", option.choices.front()) : "=N"; break;
      case OptionType::bytes: word += "=BYTES"; break;
      case OptionType::real: word += option.unit == "s" ? "=SECONDS" : "=NUMBER"; break;
    }
    words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::string> parameter_completions(std::span<const OptionRecord> options) {
  std::vector<std::string> words;
  for (const OptionRecord& option : options) {
    if (option.type == OptionType::choice)
      for (const auto choice : written_choices(option)) words.push_back(fmt::format("{}={}", option.key, choice));
    else if (has_word(option))
      words.push_back(fmt::format("{}={}", option.key, option.choices.front()));
    if (option.type != OptionType::choice)
      words.push_back(std::string(option.key) + (option.type == OptionType::flag ? "" : "="));
  }
  return words;
}

}  // namespace turnpoint
