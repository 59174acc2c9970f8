// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

namespace turnpoint {

namespace {

// Three significant digits, whole from 100 on. The step to fewer decimals is taken on the rounded number: 9.996 is
// "10.0".
std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 99.95 || magnitude == 0) return fmt::format("{:.0f}", value);
  if (magnitude >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

// Whether `magnitude` in this unit would be printed as the next unit's 1 or more: 1023.7 KiB is 1.00 MiB.
bool reaches(double magnitude, double unit, double in_next_unit) {
  return std::round(magnitude / unit) >= in_next_unit;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  constexpr double kKiB = 1024.0, kMiB = 1048576.0, kGiB = 1073741824.0;
  const double value = static_cast<double>(bytes);
  const double magnitude = std::abs(value);
  if (reaches(magnitude, kMiB, 1024)) return fmt::format("{:.1f} GiB", value / kGiB);
  if (reaches(magnitude, kKiB, 1024)) return three_digits(value / kMiB) + " MiB";
  if (magnitude >= kKiB) return three_digits(value / kKiB) + " KiB";
  return fmt::format("{} B", bytes);
}

std::string format_seconds(double seconds) {
  const double magnitude = std::abs(seconds);
  if (reaches(magnitude, 1e-3, 10000)) return three_digits(seconds) + " s";
  if (reaches(magnitude, 1e-3, 1000)) {  // four digits, to be read by people only: a thin space parts the thousands
    std::string digits = fmt::format("{:.0f}", seconds * 1e3);
    return digits.insert(digits.size() - 3, "\u2009") + " ms";
  }
  if (reaches(magnitude, 1e-6, 1000)) return three_digits(seconds * 1e3) + " ms";
  if (reaches(magnitude, 1e-9, 1000)) return three_digits(seconds * 1e6) + " \u00b5s";
  return seconds == 0 ? "0 ms" : three_digits(seconds * 1e9) + " ns";
}

std::string format_count(double count) {
  const double magnitude = std::abs(count);
  if (reaches(magnitude, 1e9, 1000)) return three_digits(count / 1e12) + " T";
  if (reaches(magnitude, 1e6, 1000)) return three_digits(count / 1e9) + " B";
  if (reaches(magnitude, 1e3, 1000)) return three_digits(count / 1e6) + " M";
  if (reaches(magnitude, 1, 10000)) return three_digits(count / 1e3) + " k";
  return fmt::format("{:.0f}", count);
}

std::string format_factor(double factor) { return fmt::format("\u00d7{:.2f}", factor); }

std::string format_percent(double fraction) {
  const double magnitude = std::abs(fraction * 100);
  const std::string number = fmt::format("{:.{}f}", magnitude, magnitude >= 9.95 ? 0 : 1);
  if (number == "0.0") return "0.0%";
  return (fraction < 0 ? "\u2212" : "+") + number + "%";
}

std::optional<double> parse_double(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  static constexpr struct {
    std::string_view suffix;
    double scale;
  } kUnits[] = {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
                {"kB", 1e3},     {"KB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
                {"TB", 1e12},    {"B", 1.0}};
  text = trim(text);
  double scale = 1;
  for (const auto& unit : kUnits) {
    if (text.size() > unit.suffix.size() && text.ends_with(unit.suffix)) {
      scale = unit.scale;
      text.remove_suffix(unit.suffix.size());
      break;
    }
  }
  // Whole bytes are read as an integer: a double holds them exactly only up to 2^53.
  constexpr std::int64_t kLargest = std::int64_t(1) << 62;
  if (scale == 1) {
    const auto whole = parse_int(text);
    if (whole && (*whole < 0 || *whole > kLargest)) return std::nullopt;
    if (whole) return *whole;
  }
  const auto value = parse_double(text);
  if (!value || *value < 0 || *value * scale > static_cast<double>(kLargest)) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(*value * scale));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool matches_wildcards(std::string_view name, std::string_view pattern) {
  // The last * takes up what does not fit behind it; earlier ones need never be asked again.
  std::size_t n = 0, p = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1, n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string closest_match(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t(0));
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i);
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t replace = diagonal + (name[i - 1] != candidate[j - 1]);
        diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replace}));
      }
    }
    // Of two or three letters hardly any are left otherwise: "owt" is not meant as "ft".
    if (row.back() < best_distance && 2 * row.back() <= std::max(name.size(), candidate.size())) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace turnpoint
