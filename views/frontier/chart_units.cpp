// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/frontier/chart_data.h"

namespace turnpoint::views {

namespace {

constexpr QChar kBeforeUnit(0x00A0);

/// Two digits that count, no more than four decimals.
QString signed_number(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 9.95 || size == 0 ? 0 : size >= 0.995 ? 1 : 1 - int(std::floor(std::log10(size)));
  return (value > 0 ? QStringLiteral("+") : QString()) + grouped_number(value, std::clamp(decimals, 0, 4));
}

}  // namespace

QString ChartUnits::memory_number(double bytes, double span) const {
  const double value = x(bytes);
  return grouped_number(value, bytes_per_unit <= 1 ? 0 : span < 0.4 ? 3 : span < 4 ? 2 : value < 100 ? 1 : 0);
}

QString ChartUnits::time_number(double seconds) const {
  const double value = y(seconds);
  return grouped_number(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

QString ChartUnits::memory_text(double bytes, double span) const {
  return memory_number(bytes, span) + kBeforeUnit + memory_name;
}

QString ChartUnits::time_text(double seconds) const { return time_number(seconds) + kBeforeUnit + time_name; }

QString ChartUnits::memory_difference(double bytes) const {
  return signed_number(x(bytes)) + kBeforeUnit + memory_name;
}

QString ChartUnits::time_difference(double seconds) const {
  return signed_number(y(seconds)) + kBeforeUnit + time_name;
}

}  // namespace turnpoint::views
