// SPDX-License-Identifier: Apache-2.0
// Data, mouse, wheel and keys of the memory chart.
#include <QApplication>
#include <QClipboard>
#include <QFontMetricsF>
#include <QMenu>
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "views/common/section_head.h"
#include "views/memory/memory_chart.h"

namespace turnpoint::views {

namespace {

constexpr double kZoomStep = 1.25, kPanShare = 0.1, kCardShare = 0.75;
constexpr int kMostTensors = 10, kRowsBesides = 8;

}  // namespace

MemoryChart::MemoryChart(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("memory_chart"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMinimumSize(240, 90);
  setAccessibleName(tr("Memory over time"));
}

void MemoryChart::set_summary(MemorySummaryPtr summary) {
  if (summary == summary_) return;
  summary_ = std::move(summary);
  device_ = kNone;
  time_.set_makespan(summary_ ? summary_->schedule()->makespan_s : 0);
  drag_ = Drag::none;
  hover_text_.clear();
  moved();
}

void MemoryChart::set_selection(SelectionModel* selection) {
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  if (selection_) {
    connect(selection_, &SelectionModel::time_range_changed, this, [this] {
      if (!changing_selection_ && follows() && selection_->time_range() &&
          time_.reveal(selection_->time_range()->first, selection_->time_range()->second))
        emit window_changed();
      stale();
    });
    connect(selection_, &SelectionModel::schedule_changed, this, &MemoryChart::stale);
    connect(selection_, &SelectionModel::hovered_time_changed, this, [this] { update(); });
  }
  stale();
}

void MemoryChart::set_device(std::uint32_t device) {
  if (device == device_) return;
  device_ = device;
  clear_hover();
  QString words;
  if (drawable()) words = plain_text(words_at(summary_->schedule()->devices[device_].peak_at_s, 0, 0));
  setAccessibleDescription(words);
  stale();
}

void MemoryChart::set_message(const QString& message) {
  message_ = message;
  stale();
}

void MemoryChart::set_show_limit(bool on) {
  show_limit_ = on;
  stale();
}

bool MemoryChart::follows() const {
  return selection_ && summary_ && (!selection_->schedule() || selection_->schedule() == summary_->schedule());
}

void MemoryChart::stale() {
  frame_stale_ = true;
  update();
}

void MemoryChart::moved() {
  stale();
  emit window_changed();
}

void MemoryChart::fit() {
  time_.fit();
  moved();
}

void MemoryChart::show_time(double from, double to) {
  time_.show(from, to);
  moved();
}

void MemoryChart::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  stale();
}

void MemoryChart::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) stale();
  QWidget::changeEvent(event);
}

void MemoryChart::mousePressEvent(QMouseEvent* event) {
  if (!drawable() || (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton)) return;
  press_ = last_ = event->position();
  press_time_ = frame().window.at(press_.x());
  drag_ = Drag::waiting;
}

void MemoryChart::mouseMoveEvent(QMouseEvent* event) {
  const QPointF position = event->position();
  if (drag_ == Drag::none) return set_hover(position);
  const Frame f = frame();
  if (drag_ == Drag::waiting) {
    if ((position - press_).manhattanLength() < QApplication::startDragDistance()) return;
    drag_ = (event->modifiers() & Qt::ShiftModifier) || f.ruler.contains(press_) ? Drag::range : Drag::pan;
    clear_hover();
    setCursor(drag_ == Drag::range ? Qt::SizeHorCursor : Qt::ClosedHandCursor);
  }
  if (drag_ == Drag::pan) {
    time_.pan(-(position.x() - last_.x()) * f.window.per_pixel());
    moved();
  } else if (selection_) {
    double from = std::clamp(press_time_, 0.0, time_.makespan());
    double to = std::clamp(f.window.at(std::clamp(position.x(), f.plot.left(), f.plot.right())), 0.0, time_.makespan());
    if (to < from) std::swap(from, to);
    changing_selection_ = true;
    selection_->pick_time_range(std::pair(from, to));
    changing_selection_ = false;
  }
  last_ = position;
}

void MemoryChart::mouseReleaseEvent(QMouseEvent* event) {
  const bool click = drag_ == Drag::waiting;
  drag_ = Drag::none;
  unsetCursor();
  if (click && selection_ && frame().ruler.contains(event->position())) selection_->pick_time_range(std::nullopt);
  set_hover(event->position());
}

void MemoryChart::mouseDoubleClickEvent(QMouseEvent* event) {
  drag_ = Drag::none;
  if (event->button() != Qt::LeftButton || !drawable()) return;
  if (follows() && selection_->time_range() && frame().ruler.contains(event->position())) {
    const auto [from, to] = *selection_->time_range();
    return show_time(from, to);
  }
  fit();
}

void MemoryChart::wheelEvent(QWheelEvent* event) {
  event->accept();
  if (!drawable()) return;
  const QPoint delta = event->angleDelta();
  if ((event->modifiers() & Qt::ShiftModifier) || std::abs(delta.x()) > std::abs(delta.y())) {
    const int turn = delta.x() != 0 ? delta.x() : delta.y();
    time_.pan(-turn / 120.0 * kPanShare * (time_.to() - time_.from()));
  } else {
    time_.zoom(std::pow(kZoomStep, delta.y() / 120.0), frame().window.at(event->position().x()));
  }
  moved();
  set_hover(event->position());
}

void MemoryChart::set_hover(QPointF position) {
  pointer_ = position;
  HoverText text;
  std::optional<double> instant;
  const Frame f = frame();
  if (drawable() && (f.plot.contains(position) || f.ruler.contains(position))) {
    const double at = f.window.at(position.x());
    if (at >= 0 && at <= time_.makespan()) {
      instant = at;
      if (f.plot.contains(position)) {
        const double line = QFontMetricsF(secondary_font(font())).height() + 2;
        const int rows = int(height() * kCardShare / line) - kRowsBesides;
        text = words_at(at, f.window.per_pixel(), std::size_t(std::clamp(rows, 0, kMostTensors)));
      }
    }
  }
  hover_text_ = std::move(text);
  if (follows()) selection_->hover_time(instant);
  update();
}

void MemoryChart::clear_hover() {
  if (!hover_text_.empty() && follows()) selection_->hover_time(std::nullopt);
  hover_text_.clear();
  update();
}

void MemoryChart::leaveEvent(QEvent* event) {
  if (follows()) selection_->hover_time(std::nullopt);
  clear_hover();
  QWidget::leaveEvent(event);
}

void MemoryChart::keyPressEvent(QKeyEvent* event) {
  if (!summary_) return QWidget::keyPressEvent(event);
  const double span = time_.to() - time_.from(), middle = (time_.from() + time_.to()) / 2;
  const auto zoom = [&](double factor) {
    time_.zoom(factor, middle);
    moved();
  };
  const auto pan = [&](double share) {
    time_.pan(share * span);
    moved();
  };
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_A: return pan(-kPanShare);
    case Qt::Key_Right:
    case Qt::Key_D: return pan(kPanShare);
    case Qt::Key_Up: emit device_stepped(-1); return;
    case Qt::Key_Down: emit device_stepped(1); return;
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoom(kZoomStep);
    case Qt::Key_S:
    case Qt::Key_Minus: return zoom(1 / kZoomStep);
    case Qt::Key_F:
    case Qt::Key_Home: return fit();
    case Qt::Key_0:
      if (event->modifiers() & Qt::ControlModifier) return fit();
      break;
    case Qt::Key_P:
      if (drawable()) {
        // The peak in the middle of a tenth of the makespan.
        const double at = summary_->schedule()->devices[device_].peak_at_s, half = time_.makespan() * 0.05;
        return show_time(at - half, at + half);
      }
      break;
    case Qt::Key_Escape:
      if (!hover_text_.empty()) return clear_hover();
      if (follows() && selection_->time_range()) return selection_->pick_time_range(std::nullopt);
      break;
    default: break;
  }
  QWidget::keyPressEvent(event);
}

void MemoryChart::contextMenuEvent(QContextMenuEvent* event) {
  if (!drawable()) return;
  QMenu menu(this);
  const QString words = plain_text(hover_text_);
  QAction* copy = menu.addAction(tr("Copy"), this, [words] { QApplication::clipboard()->setText(words); });
  copy->setEnabled(!words.isEmpty());
  menu.addAction(tr("Fit all"), this, &MemoryChart::fit);
  menu.addSeparator();
  menu.addAction(tr("Picture as PNG\u2026"), this, [this] { emit export_requested(QStringLiteral("png")); });
  menu.addAction(tr("Picture as SVG\u2026"), this, [this] { emit export_requested(QStringLiteral("svg")); });
  clear_hover();
  menu.exec(event->globalPos());
}

}  // namespace turnpoint::views
