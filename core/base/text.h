// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them and as people write them on a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace turnpoint {

std::string format_bytes(std::int64_t bytes);  ///< "9.6 GiB", "148 MiB": GiB with one decimal, below that 3 digits
std::string format_seconds(double seconds);    ///< "812 ms", "31.6 ms", "12.4 s"
std::string format_count(double count);        ///< "1.31 B", "124 M"
std::string format_factor(double factor);      ///< "x0.50" with a multiplication sign
std::string format_percent(double fraction);   ///< signed: "+4.1%", minus is U+2212; "0.0%" has no sign

/// "16GiB", "16 GiB", "500MB", "1073741824": binary and decimal prefixes; nullopt if malformed, negative or above 2^62.
std::optional<std::int64_t> parse_bytes(std::string_view text);
/// Whole text must be a finite number; locale-independent.
std::optional<double> parse_double(std::string_view text);
std::optional<std::int64_t> parse_int(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);
/// Whether a name is what a pattern says, where * stands for any characters, also none, and ? for one.
bool matches_wildcards(std::string_view name, std::string_view pattern);
/// The closest of `candidates` by edit distance, for "did you mean"; empty if none is close.
std::string closest_match(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace turnpoint
