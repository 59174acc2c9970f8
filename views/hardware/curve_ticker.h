// SPDX-License-Identifier: Apache-2.0
// Ticks of the two logarithmic axes: sizes at powers of two, times and bandwidths at 1, 2, 5 of each decade.
#pragma once

#include <qcustomplot.h>

namespace turnpoint::views {

/// "1 KiB", "32 KiB", "1 MiB".
class SizeTicker : public QCPAxisTicker {
 public:
  int room = 8;  ///< labels that fit

 protected:
  QVector<double> createTickVector(double step, const QCPRange& range) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override;
  int getSubTickCount(double) override { return 0; }
};

class DecadeTicker : public QCPAxisTicker {
 public:
  bool bandwidth = false;  ///< bytes/s, else seconds
  int room = 6;

 protected:
  QVector<double> createTickVector(double step, const QCPRange& range) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override;
  int getSubTickCount(double) override { return 0; }
};

}  // namespace turnpoint::views
