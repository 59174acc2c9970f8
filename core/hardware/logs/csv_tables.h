// SPDX-License-Identifier: Apache-2.0
// Reading of comma-separated tables with a heading: cells by column name, ragged rows reported.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/hardware/logs/log_text.h"

namespace turnpoint::logs {

/// One row under its heading. A cell that is missing or no number becomes a problem of its line, once a row.
class CsvRow {
 public:
  CsvRow(LogBuilder& out, int line, const std::vector<std::string>& heading, std::vector<std::string_view> cells)
      : out_(out), line_(line), heading_(heading), cells_(std::move(cells)) {}

  int line() const { return line_; }
  bool good() const { return good_; }
  bool has(std::string_view column) const;
  std::string_view text(std::string_view column) const;  ///< empty if there is none
  double number(std::string_view column, double minimum = 0, double maximum = 1e15);
  std::int64_t integer(std::string_view column, std::int64_t minimum, std::int64_t maximum);

 private:
  LogBuilder& out_;
  int line_;
  const std::vector<std::string>& heading_;
  std::vector<std::string_view> cells_;
  bool good_ = true;
};

/// Calls `row` for each row of as many cells as the heading (the first line that is not empty); others are problems.
void read_csv(LogBuilder& out, LineReader& lines, const std::function<void(CsvRow&)>& row);

}  // namespace turnpoint::logs
