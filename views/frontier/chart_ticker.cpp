// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "views/common/format.h"
#include "views/frontier/chart_items.h"

namespace turnpoint::views {

double NumberTicker::getTickStep(const QCPRange& range) {
  const double step = QCPAxisTicker::getTickStep(range);
  // As many decimals as the step itself needs: 2.5 needs one.
  decimals_ = 0;
  for (double scaled = step; decimals_ < 6 && std::abs(scaled - std::round(scaled)) > 1e-6 * scaled; scaled *= 10)
    ++decimals_;
  return step;
}

QString NumberTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  int decimals = decimals_;
  if (logarithmic && tick < 1 && tick > 0) decimals = static_cast<int>(std::ceil(-std::log10(tick) - 1e-9));
  return grouped_number(tick, decimals);
}

QVector<double> NumberTicker::createTickVector(double step, const QCPRange& range) {
  // Over less than a decade round steps read better than the few powers of ten inside it.
  if (!logarithmic || range.lower <= 0 || range.upper / range.lower < 8)
    return QCPAxisTicker::createTickVector(step, range);
  decimals_ = 0;
  QVector<double> ticks;
  for (int decade = static_cast<int>(std::floor(std::log10(range.lower)));
       decade <= static_cast<int>(std::ceil(std::log10(range.upper))); ++decade)
    for (const double digit : {1.0, 2.0, 5.0}) ticks << digit * std::pow(10, decade);
  return ticks;
}

}  // namespace turnpoint::views
