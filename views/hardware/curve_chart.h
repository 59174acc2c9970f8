// SPDX-License-Identifier: Apache-2.0
// One collective's time, or bytes over time, against its size, both logarithmic: measured points with their quartiles,
// what costs are computed with, and the formulas of the library for comparison.
#pragma once

#include <QWidget>
#include <memory>

#include "views/hardware/hardware_content.h"

class QCustomPlot;

namespace turnpoint::views {

class CurveKey;

/// Wheel zooms, drag pans, double click fits; the pointer reads the nearest measured point.
class CurveChart : public QWidget {
  Q_OBJECT
 public:
  explicit CurveChart(QWidget* parent = nullptr);
  ~CurveChart() override;

  void set_chart(CurveChartData chart);
  const CurveChartData& chart() const { return chart_; }
  void set_bandwidth(bool on);  ///< bytes/s in place of seconds
  bool bandwidth() const { return bandwidth_; }
  void fit();
  QString describe() const;  ///< the chart in words

  // For tests.
  QPoint position_of(const MeasuredPoint& point) const;  ///< in this widget
  QString read_out(QPoint position) const;               ///< of the nearest measured point; empty where none is near
  int falls_marked() const { return falls_marked_; }
  int bars_drawn() const { return bars_drawn_; }
  QString axis_label() const;

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void apply_theme();
  void rebuild();
  void add_lines();
  void add_points();
  void count_labels();
  double height(double bytes, double time_s) const { return bandwidth_ ? bytes / time_s : time_s; }

  CurveChartData chart_;
  QCustomPlot* plot_;
  CurveKey* key_;
  bool bandwidth_ = false;
  int falls_marked_ = 0, bars_drawn_ = 0;
};

}  // namespace turnpoint::views
