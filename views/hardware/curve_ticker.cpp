// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/curve_ticker.h"

#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/hardware/hardware_content.h"

namespace turnpoint::views {

namespace {

/// 1, 2, 5, 10, ... as people write them: no decimals, the unit that fits.
QString plain(double value, const char* const* units, int count) {
  int unit = 0;
  while (value >= 999.5 && unit + 1 < count) value /= 1000, ++unit;
  const int decimals = value >= 0.95 ? 0 : static_cast<int>(std::ceil(-std::log10(value) - 1e-9));
  return grouped_number(value, std::min(decimals, 6)) + QChar(0x00A0) + QString::fromUtf8(units[unit]);
}

}  // namespace

QVector<double> SizeTicker::createTickVector(double, const QCPRange& range) {
  if (!(range.lower > 0) || !(range.upper > range.lower)) return {};
  const int first = static_cast<int>(std::ceil(std::log2(range.lower))),
            last = static_cast<int>(std::floor(std::log2(range.upper)));
  int step = 1;
  while ((last - first) / step + 1 > std::max(2, room) && step < 64) step = step == 1 ? 2 : step == 2 ? 5 : step + 5;
  QVector<double> ticks;
  // Multiples of the step, so that ticks stay where they are while the view is dragged.
  for (int power = first - ((first % step) + step) % step; power <= last + step; power += step)
    ticks << std::pow(2.0, power);
  return ticks;
}

QString SizeTicker::getTickLabel(double tick, const QLocale&, QChar, int) { return size_text(tick); }

QVector<double> DecadeTicker::createTickVector(double, const QCPRange& range) {
  if (!(range.lower > 0) || !(range.upper > range.lower)) return {};
  const double decades = std::log10(range.upper / range.lower);
  const int first = static_cast<int>(std::floor(std::log10(range.lower))),
            last = static_cast<int>(std::ceil(std::log10(range.upper)));
  QVector<double> digits{1};
  if (decades * 3 <= room)
    digits = {1, 2, 5};
  else if (decades * 2 <= room)
    digits = {1, 3};
  int step = 1;
  while (decades / step > room) ++step;
  QVector<double> ticks;
  for (int decade = first; decade <= last; ++decade)
    if (step == 1 || ((decade % step) + step) % step == 0)
      for (const double digit : digits) ticks << digit * std::pow(10.0, decade);
  return ticks;
}

QString DecadeTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  static const char* const kTimes[] = {"ns", "\u00b5s", "ms", "s"};
  static const char* const kBandwidths[] = {"kB/s", "MB/s", "GB/s", "TB/s"};
  return bandwidth ? plain(tick / 1e3, kBandwidths, 4) : plain(tick * 1e9, kTimes, 4);
}

}  // namespace turnpoint::views
