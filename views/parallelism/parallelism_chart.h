// SPDX-License-Identifier: Apache-2.0
// Iteration time, samples per second, or the largest batch that fits, against the number of devices: a line per method,
// what does not fit, and the price of the subject's plans on an axis of its own. Paints itself: a handful of points,
// every label placed.
#pragma once

#include <QWidget>
#include <vector>

#include "views/parallelism/parallelism_data.h"

namespace turnpoint::views {

class LabelPlacer;
struct ThemeColors;

/// Mouse: hovering reads a count, a click picks it, a double click asks for it. Keyboard: left, right, Enter, Escape.
class ParallelismChart : public QWidget {
  Q_OBJECT
 public:
  explicit ParallelismChart(QWidget* parent = nullptr);

  void set_data(ParallelismData data);
  const ParallelismData& data() const { return data_; }
  void set_throughput(bool on);
  void set_logarithmic(bool on);
  bool throughput() const { return throughput_; }
  bool logarithmic() const { return logarithmic_; }
  void set_picked(int devices);  ///< 0: none
  int picked() const { return picked_; }

  bool save_svg(const QString& path) const;

  // For tests.
  int count_at(QPointF position) const;  ///< the column's count; 0: none
  QPointF position_of(const ParallelismPoint& point) const;
  QRectF plot_area() const;
  int labels_drawn() const { return labels_drawn_; }

 signals:
  void count_picked(int devices);     ///< 0: none any more
  void count_requested(int devices);  ///< double click or Enter

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Scale;  ///< from values to pixels for one size
  Scale scale_for(QSizeF size) const;
  double value(const ParallelismPoint& point) const;
  /// More is better, and nothing has a unit of time.
  bool rising() const { return throughput_ || data_.largest_batch; }
  void paint(QPainter& painter, QSizeF size) const;
  void paint_misfits(QPainter& painter, const Scale& scale, LabelPlacer& placer) const;
  void paint_axes(QPainter& painter, const Scale& scale) const;
  void paint_columns(QPainter& painter, const Scale& scale) const;
  void paint_ideal(QPainter& painter, const Scale& scale) const;
  void paint_prices(QPainter& painter, const Scale& scale, LabelPlacer& placer) const;
  void paint_line(QPainter& painter, const Scale& scale, const ParallelismLine& line, bool subject) const;
  void paint_names(QPainter& painter, const Scale& scale, LabelPlacer& placer) const;
  bool all_misfit(int devices) const;

  ParallelismData data_;
  bool throughput_ = false, logarithmic_ = false;
  int picked_ = 0, hovered_ = 0;
  mutable int labels_drawn_ = 0;
};

}  // namespace turnpoint::views
