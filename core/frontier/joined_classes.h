// SPDX-License-Identifier: Apache-2.0
// Classes of states that two tables tell apart, as one numbering. Part of elimination.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace turnpoint::frontier::detail {

/// Dense classes over states from raw class numbers, in order of first appearance.
struct Dense {
  std::vector<std::uint32_t> class_of;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  ///< class -> (first, second) raw class
};

inline Dense join(const std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& second) {
  constexpr std::uint32_t kNew = ~std::uint32_t(0);
  constexpr std::size_t kSmall = 1024;  // pairs of classes from which a table must be no larger than it is full
  Dense result;
  result.class_of.reserve(first.size());
  const auto add = [&](std::size_t s, std::uint32_t& number) {
    if (number == kNew) {
      number = static_cast<std::uint32_t>(result.pairs.size());
      result.pairs.push_back({first[s], second[s]});
    }
    result.class_of.push_back(number);
  };
  const auto classes = [](const std::vector<std::uint32_t>& of) {
    return of.empty() ? std::size_t(1) : std::size_t(*std::max_element(of.begin(), of.end())) + 1;
  };
  const std::size_t rows = classes(first), columns = classes(second);
  if (rows * columns <= std::max(kSmall, 8 * first.size())) {
    std::vector<std::uint32_t> known(rows * columns, kNew);
    for (std::size_t s = 0; s < first.size(); ++s) add(s, known[first[s] * columns + second[s]]);
  } else {
    std::unordered_map<std::uint64_t, std::uint32_t> known;
    for (std::size_t s = 0; s < first.size(); ++s)
      add(s, known.try_emplace((std::uint64_t(first[s]) << 32) | second[s], kNew).first->second);
  }
  return result;
}

}  // namespace turnpoint::frontier::detail
