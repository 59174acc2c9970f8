// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace turnpoint {

namespace {

std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 100 || magnitude == 0) return fmt::format("{:.0f}", value);
  if (magnitude >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  const double value = static_cast<double>(bytes);
  const double magnitude = std::abs(value);
  if (magnitude >= 1073741824.0) return fmt::format("{:.1f} GiB", value / 1073741824.0);
  if (magnitude >= 1048576.0) return three_digits(value / 1048576.0) + " MiB";
  if (magnitude >= 1024.0) return three_digits(value / 1024.0) + " KiB";
  return fmt::format("{} B", bytes);
}

std::string format_seconds(double seconds) {
  const double magnitude = std::abs(seconds);
  if (magnitude >= 10) return three_digits(seconds) + " s";
  if (magnitude >= 1e-3) return three_digits(seconds * 1e3) + " ms";
  if (magnitude >= 1e-6) return three_digits(seconds * 1e6) + " \u00b5s";
  return seconds == 0 ? "0 ms" : three_digits(seconds * 1e9) + " ns";
}

std::string format_count(double count) {
  const double magnitude = std::abs(count);
  if (magnitude >= 1e12) return three_digits(count / 1e12) + " T";
  if (magnitude >= 1e9) return three_digits(count / 1e9) + " B";
  if (magnitude >= 1e6) return three_digits(count / 1e6) + " M";
  if (magnitude >= 1e4) return three_digits(count / 1e3) + " k";
  return fmt::format("{:.0f}", count);
}

std::string format_factor(double factor) { return fmt::format("\u00d7{:.2f}", factor); }

std::string format_percent(double fraction) {
  const double percent = fraction * 100;
  const std::string number = std::abs(percent) >= 10 ? fmt::format("{:.0f}", std::abs(percent)) : fmt::format("{:.1f}", std::abs(percent));
  return (percent < 0 ? "\u2212" : "+") + number + "%";
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
  static constexpr struct { std::string_view suffix; double scale; } kUnits[] = {
      {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
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
  const auto value = parse_double(text);
  if (!value || *value < 0 || *value * scale > 4.6e18) return std::nullopt;
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
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace turnpoint
