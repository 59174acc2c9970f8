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
  std::span<const std::string_view> choices = {};  ///< of an integer: one, the word for its minimum ("all")
  std::string_view help = {};
};

/// Reads a value in the option's type and checks its range: "0.5", "bf16", "16GiB", "true".
Expected<double> parse_option(const OptionRecord& option, std::string_view text);
/// The inverse: text that parse_option reads back to the same value.
std::string format_option(const OptionRecord& option, double value);

/// Values of `options` as parameters behind a method's name: "zero=2:group=node". What has its default is left out;
/// flags are their key alone.
std::string format_parameters(std::span<const OptionRecord> options, std::span<const double> values);
/// The inverse, one value for each option; nullopt where read_parameters() has an error.
std::optional<std::vector<double>> parse_parameters(std::span<const OptionRecord> options, std::string_view text);

/// What stands behind a method's name, read by its options.
class Parameters {
 public:
  Parameters(std::span<const OptionRecord> options, std::vector<double> values, std::vector<bool> written)
      : options_(options), values_(std::move(values)), written_(std::move(written)) {}

  const std::vector<double>& values() const { return values_; }  ///< in the order of the options
  /// Of the option with this key, which there must be.
  double number(std::string_view key) const;
  int integer(std::string_view key) const { return static_cast<int>(number(key)); }
  bool flag(std::string_view key) const { return number(key) != 0; }
  std::string_view choice(std::string_view key) const;
  /// Whether it stands in the text, be it with the value that it has otherwise.
  bool written(std::string_view key) const { return written_[index(key)]; }

 private:
  std::size_t index(std::string_view key) const;

  std::span<const OptionRecord> options_;  ///< outlive it
  std::vector<double> values_;
  std::vector<bool> written_;
};

/// Reads "zero=2:group=node:recompute". A flag is its key alone; so is a choice whose first is "none", which then is
/// the last. Usage error, of `whose` ("method fsdp"): no such parameter, one that is there twice, no such value.
Expected<Parameters> read_parameters(std::string_view whose, std::span<const OptionRecord> options,
                                     std::string_view text);
/// How each is written, for people: "zero=1|2|3", "tp=N", "sequence-parallel". Choices end with their default; what
/// stands for nothing ("none", "0") is left out, as a text leaves it out.
std::vector<std::string> parameter_words(std::span<const OptionRecord> options);
/// What may stand in a text, for a line that completes it: "zero=1", "tp=", "sequence-parallel".
std::vector<std::string> parameter_completions(std::span<const OptionRecord> options);

}  // namespace turnpoint
