// SPDX-License-Identifier: Apache-2.0
// A logarithmic slider from x1/8 to x8 with a detent and tick at x1 in the middle; accent from x1 to the handle.
#pragma once

#include <QSlider>

namespace turnpoint::views {

/// The QSlider's integer is kStepsPerOctave * log2(factor). Arrow keys change the factor by 5 %, Page doubles or
/// halves, Home goes to x1. A gesture is everything between press and release, or one key press.
class WhatIfSlider : public QSlider {
  Q_OBJECT
 public:
  static constexpr int kStepsPerOctave = 1000;
  static constexpr double kLargest = 8;

  explicit WhatIfSlider(QWidget* parent = nullptr);

  double factor() const { return factor_; }
  void set_factor(double factor);  ///< without a signal; outside the range the handle rests at the end
  int handle_x(double factor) const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void gesture_began();
  void factor_moved(double factor);
  void gesture_ended();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  double factor_at(int x) const;
  void move_to(double factor);
  void step_to(double factor);

  double factor_ = 1;
  int grab_offset_ = 0;
};

}  // namespace turnpoint::views
