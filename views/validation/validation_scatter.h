// SPDX-License-Identifier: Apache-2.0
// Predicted against measured step time, one dot a plan; on the diagonal the two agree, the band is 10 % wide either
// way.
#pragma once

#include <QWidget>
#include <vector>

#include "views/validation/validation_content.h"

namespace turnpoint::views {

class ValidationScatter : public QWidget {
  Q_OBJECT
 public:
  static constexpr double kBand = 0.1;

  explicit ValidationScatter(QWidget* parent = nullptr);

  /// Reports without a measured step are left out. `current`: index into `reports`, ringed; -1: none.
  void set_reports(std::vector<ValidationReportPtr> reports, int current);

  int dots() const { return static_cast<int>(dots_.size()); }
  QPointF position_of(int dot) const;
  int dot_at(QPointF position) const;  ///< -1: none near
  QString tool_tip(int dot) const;
  QString describe() const;

 signals:
  void picked(int report);  ///< index into the reports

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Dot {
    int report = 0;
    double predicted = 0, measured = 0, q1 = 0, q3 = 0;
  };
  QRectF axes() const;
  QPointF place(double predicted, double measured) const;
  void paint_axes(QPainter& painter) const;

  std::vector<ValidationReportPtr> reports_;
  std::vector<Dot> dots_;
  int current_ = -1;
  double least_ = 0, most_ = 1;  ///< of both axes, seconds
};

}  // namespace turnpoint::views
