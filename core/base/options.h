// SPDX-License-Identifier: Apache-2.0
// Options as records: command line, session file and window panel are all made from the same table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint {

enum class OptionType { integer, real, choice, flag, bytes };

/// One option: `key` is the command line name ("inter-bandwidth-scale") and the session key; `text` the label.
struct OptionRecord {
  std::string_view key;
  std::string_view text;
  std::string_view unit;  ///< "" where there is none
  OptionType type = OptionType::real;
  double minimum = 0;        ///< bounds of integer and real; of bytes too where maximum > minimum
  double default_value = 0;  ///< for a choice: the index into `choices`
  double maximum = 0;
  std::span<const std::string_view> choices = {};
  std::string_view help = {};
};

/// Reads a value in the option's type and checks its range: "0.5", "bf16", "16GiB", "true".
Expected<double> parse_option(const OptionRecord& option, std::string_view text);
/// The inverse: text that parse_option reads back to the same value.
std::string format_option(const OptionRecord& option, double value);

/// Values of `options` as parameters behind a method's name: "zero=2:group=node". What has its default is left out;
/// flags are their key alone.
std::string format_parameters(std::span<const OptionRecord> options, std::span<const double> values);
/// The inverse, one value for each option; nullopt where a part names none of them or has a value that is none.
std::optional<std::vector<double>> parse_parameters(std::span<const OptionRecord> options, std::string_view text);

}  // namespace turnpoint
