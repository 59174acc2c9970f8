// SPDX-License-Identifier: Apache-2.0
// Names gathered into patterns of Python's regular expressions: names whose values are alike and that differ in numbers
// alone are one row. Together the patterns match every name once.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace turnpoint::jax {

struct NameRow {
  std::string pattern, value;
  int names = 0;  ///< that the pattern matches
};

/// Rows in the order in which their first names come.
std::vector<NameRow> name_rows(const std::vector<std::pair<std::string, std::string>>& names_and_values);

}  // namespace turnpoint::jax
