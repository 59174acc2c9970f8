// SPDX-License-Identifier: Apache-2.0
#include "views/sweep/sweep_panel.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

/// "1.2 M", "340 k": the number of a tick.
QString short_number(double value) {
  if (value >= 1e9) return grouped_number(value / 1e9, value < 1e10) + QStringLiteral(" G");
  if (value >= 1e6) return grouped_number(value / 1e6, value < 1e7) + QStringLiteral(" M");
  if (value >= 1e4) return grouped_number(value / 1e3, 0) + QStringLiteral(" k");
  return grouped_number(value, value < 10 && value > 0);
}

/// A tick in as few decimals as it needs: "50", "0.5".
QString plain_number(double value) {
  int decimals = 0;
  for (double scaled = value; decimals < 6 && std::abs(scaled - std::round(scaled)) > 1e-6 * std::abs(scaled);
       scaled *= 10)
    ++decimals;
  return grouped_number(value, decimals);
}

}  // namespace

double SweepChart::Panel::x(std::int64_t value) const {
  return plot.left() + plot.width() * (std::log2(double(value)) - left) / (right - left);
}

double SweepChart::Panel::y(double value) const {
  const double height = plot.height() - above;
  if (logarithmic) return plot.bottom() - height * std::log(std::max(value, low) / low) / std::log(high / low);
  return plot.bottom() - height * (value - low) / (high - low);
}

std::vector<double> SweepChart::Panel::ticks() const {
  std::vector<double> list;
  if (empty) return list;
  if (!logarithmic) {
    for (double value = low; value <= high * (1 + 1e-9); value += step) list.push_back(value);
    return list;
  }
  const double span = std::log10(high / low);
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
    for (const double digit : {1.0, 2.0, 5.0})
      if ((digit == 1 || span < 2.7) && digit * power >= low * (1 - 1e-9) && digit * power <= high * (1 + 1e-9))
        list.push_back(digit * power);
  return list;
}

QString SweepChart::Panel::tick_text(double value) const {
  switch (figure) {
    case SweepFigure::time: return plain_number(value * time.per_second);
    case SweepFigure::memory: return grouped_number(value / memory.bytes, step / memory.bytes < 1);
    case SweepFigure::third: break;
  }
  return rate ? short_number(value) : u'$' + plain_number(value);
}

}  // namespace turnpoint::views
