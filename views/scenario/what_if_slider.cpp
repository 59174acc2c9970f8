// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/what_if_slider.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {
constexpr int kHandle = 7, kDetent_px = 4;
}

WhatIfSlider::WhatIfSlider(QWidget* parent) : QSlider(Qt::Horizontal, parent) {
  const int end = static_cast<int>(std::lround(std::log2(kLargest) * kStepsPerOctave));
  setRange(-end, end);
  setSingleStep(static_cast<int>(std::lround(std::log2(1.05) * kStepsPerOctave)));
  setPageStep(kStepsPerOctave);
  setFocusPolicy(Qt::StrongFocus);
  setCursor(Qt::PointingHandCursor);
}

QSize WhatIfSlider::sizeHint() const { return {120, 2 * kHandle + 6}; }
QSize WhatIfSlider::minimumSizeHint() const { return {72, 2 * kHandle + 6}; }

int WhatIfSlider::handle_x(double factor) const {
  const double octaves = std::log2(kLargest);
  const double at = std::clamp(std::log2(factor) / octaves, -1.0, 1.0);
  return static_cast<int>(std::lround(width() / 2.0 + at * (width() / 2.0 - kHandle - 1)));
}

double WhatIfSlider::factor_at(int x) const {
  if (std::abs(x - handle_x(1)) <= kDetent_px) return 1;
  const double at = (x - width() / 2.0) / std::max(1.0, width() / 2.0 - kHandle - 1);
  return std::exp2(std::clamp(at, -1.0, 1.0) * std::log2(kLargest));
}

void WhatIfSlider::set_factor(double factor) {
  factor_ = factor;
  const QSignalBlocker quiet(this);
  setValue(static_cast<int>(std::lround(std::log2(factor) * kStepsPerOctave)));
  update();
}

void WhatIfSlider::move_to(double factor) {
  factor = std::clamp(factor, 1 / kLargest, kLargest);
  if (std::abs(factor - 1) < 1e-9) factor = 1;
  if (factor == factor_) return;
  set_factor(factor);
  emit factor_moved(factor);
}

void WhatIfSlider::step_to(double factor) {
  emit gesture_began();
  move_to(factor);
  emit gesture_ended();
}

void WhatIfSlider::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  setFocus(Qt::MouseFocusReason);
  setSliderDown(true);
  const int x = event->position().toPoint().x(), handle = handle_x(factor_);
  grab_offset_ = std::abs(x - handle) <= kHandle + 2 ? x - handle : 0;
  emit gesture_began();
  if (grab_offset_ == 0 && x != handle) move_to(factor_at(x));
  update();
}

void WhatIfSlider::mouseMoveEvent(QMouseEvent* event) {
  if (isSliderDown()) move_to(factor_at(event->position().toPoint().x() - grab_offset_));
}

void WhatIfSlider::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !isSliderDown()) return;
  setSliderDown(false);
  emit gesture_ended();
  update();
}

void WhatIfSlider::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) step_to(1);
}

void WhatIfSlider::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Down: return step_to(factor_ / 1.05);
    case Qt::Key_Right:
    case Qt::Key_Up: return step_to(factor_ * 1.05);
    case Qt::Key_PageDown: return step_to(factor_ / 2);
    case Qt::Key_PageUp: return step_to(factor_ * 2);
    case Qt::Key_Home: return step_to(1);
    default: QWidget::keyPressEvent(event);
  }
}

// The dock scrolls under the pointer; a slider that ate the wheel would change the scenario by accident.
void WhatIfSlider::wheelEvent(QWheelEvent* event) { event->ignore(); }

void WhatIfSlider::paintEvent(QPaintEvent*) {
  const ThemeColors& colors = theme_colors(palette());
  const bool live = isEnabled();
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const double middle = height() / 2.0;
  const int from = handle_x(1), to = handle_x(factor_);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colors.border);
  painter.drawRoundedRect(QRectF(kHandle + 1, middle - 2, width() - 2 * kHandle - 2, 4), 2, 2);
  const bool edited = factor_ != 1;
  if (edited && live) {
    painter.setBrush(colors.accent);
    painter.drawRect(QRectF(std::min(from, to), middle - 2, std::abs(to - from), 4));
    painter.drawRect(QRectF(from - 0.5, middle - 6, 1, 12));
  } else {
    painter.setBrush(colors.axis);
    painter.drawRect(QRectF(from - 0.5, middle - 6, 1, 12));
  }
  const QColor ring = live ? (edited || hasFocus() ? colors.accent : colors.axis) : colors.border;
  painter.setPen(QPen(ring, edited ? 2 : 1.4));
  painter.setBrush(!live ? colors.window : isSliderDown() ? colors.accent : edited ? colors.base : colors.head);
  painter.drawEllipse(QPointF(to, middle), kHandle - 1.0, kHandle - 1.0);
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(colors.accent, 1));
    painter.drawEllipse(QPointF(to, middle), kHandle + 1.5, kHandle + 1.5);
  }
}

}  // namespace turnpoint::views
