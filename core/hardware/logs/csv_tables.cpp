// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/csv_tables.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace turnpoint::logs {

bool CsvRow::has(std::string_view column) const {
  return std::find(heading_.begin(), heading_.end(), column) != heading_.end();
}

std::string_view CsvRow::text(std::string_view column) const {
  const auto found = std::find(heading_.begin(), heading_.end(), column);
  return found == heading_.end() ? std::string_view() : cells_[static_cast<std::size_t>(found - heading_.begin())];
}

double CsvRow::number(std::string_view column, double minimum, double maximum) {
  const Number value = has(column) ? logs::number(text(column), minimum, maximum) : Number{0, "is missing"};
  if (value) return value.value;
  if (good_) out_.warn(line_, fmt::format("broken row: {} {}", column, value.problem));
  good_ = false;
  return minimum;
}

std::int64_t CsvRow::integer(std::string_view column, std::int64_t minimum, std::int64_t maximum) {
  const double value = number(column, static_cast<double>(minimum), static_cast<double>(maximum));
  if (value != std::floor(value)) {
    if (good_) out_.warn(line_, fmt::format("broken row: {} {} is no whole number", column, shown(text(column))));
    good_ = false;
  }
  return good_ ? static_cast<std::int64_t>(value) : minimum;
}

void read_csv(LogBuilder& out, LineReader& lines, const std::function<void(CsvRow&)>& row) {
  std::vector<std::string> heading;
  for (Line line; lines.next(line);) {
    if (!line.left_out.empty()) {
      out.warn(line.number, line.left_out + ": left out");
      continue;
    }
    if (trimmed(line.text).empty()) continue;
    auto cells = csv_cells(line.text);
    if (heading.empty()) {
      heading.assign(cells.begin(), cells.end());
    } else if (cells.size() != heading.size()) {
      out.warn(line.number, fmt::format("broken row: {} cells under {} columns", cells.size(), heading.size()));
    } else {
      CsvRow current(out, line.number, heading, std::move(cells));
      row(current);
    }
  }
}

}  // namespace turnpoint::logs
