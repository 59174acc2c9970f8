// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/name_rows.h"

#include <fmt/format.h>
#include <cctype>
#include <map>
#include <set>

#include "core/export/engines/module_names.h"

namespace turnpoint::jax {

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// "a12.b3" -> "a", "12", ".b", "3", "": words and numbers by turns, words first.
std::vector<std::string> words_and_numbers(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (is_digit(c) != (parts.size() % 2 == 0)) parts.emplace_back();
    parts.back() += c;
  }
  return parts;
}

/// pattern_of() keeps a word as it is, but for what must be escaped.
std::string exactly(const std::string& name) {
  std::string pattern;
  const auto parts = words_and_numbers(name);
  for (std::size_t i = 0; i < parts.size(); ++i) pattern += i % 2 ? parts[i] : pattern_of(parts[i]);
  return pattern;
}

/// For these names and no other ones that differ in numbers alone.
std::string one_of(const std::vector<std::string>& names) {
  const auto first = words_and_numbers(names.front());
  std::vector<std::set<std::string>> at(first.size());
  for (const std::string& name : names) {
    const auto parts = words_and_numbers(name);
    for (std::size_t i = 0; i < parts.size(); ++i) at[i].insert(parts[i]);
  }
  int varying = 0;
  for (const auto& found : at) varying += found.size() > 1;
  if (varying > 1) {
    std::vector<std::string> each;
    for (const std::string& name : names) each.push_back(exactly(name));
    return fmt::format("(?:{})", fmt::join(each, "|"));
  }
  std::string pattern;
  for (std::size_t i = 0; i < first.size(); ++i)
    pattern += at[i].size() > 1 ? fmt::format("(?:{})", fmt::join(at[i], "|"))
               : i % 2          ? first[i]
                                : pattern_of(first[i]);
  return pattern;
}

}  // namespace

std::vector<NameRow> name_rows(const std::vector<std::pair<std::string, std::string>>& names_and_values) {
  std::map<std::string, std::set<std::string>> values_of;  // by pattern
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> names_of;
  std::vector<std::pair<std::string, std::string>> order;
  for (const auto& [name, value] : names_and_values) {
    const std::pair key(pattern_of(name), value);
    values_of[key.first].insert(value);
    auto& names = names_of[key];
    if (names.empty()) order.push_back(key);
    names.push_back(name);
  }
  std::vector<NameRow> rows;
  for (const auto& key : order) {
    const auto& names = names_of[key];
    rows.push_back({values_of[key.first].size() == 1 ? key.first : one_of(names), key.second, int(names.size())});
  }
  return rows;
}

}  // namespace turnpoint::jax
