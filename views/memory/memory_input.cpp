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

#include "views/common/picture_export.h"
#include "views/common/section_head.h"
#include "views/memory/memory_chart.h"

namespace turnpoint::views {

namespace {

constexpr double kCardShare = 0.75;
constexpr int kMostTensors = 10, kRowsBesides = 8;

}  // namespace

MemoryChart::MemoryChart(TimeZoomPtr zoom, QWidget* parent)
    : QWidget(parent), zoom_(std::move(zoom)), hand_(this, zoom_) {
  connect(zoom_.get(), &TimeZoom::changed, this, &MemoryChart::moved);
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
  zoom_->set_schedule(summary_ ? summary_->schedule() : nullptr);
  hand_.cancel();
  hover_text_.clear();
  moved();
}

void MemoryChart::set_selection(SelectionModel* selection) {
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  zoom_->follow(selection);
  if (selection_) {
    connect(selection_, &SelectionModel::time_range_changed, this, &MemoryChart::stale);
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

void MemoryChart::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  stale();
}

void MemoryChart::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) stale();
  QWidget::changeEvent(event);
}

void MemoryChart::mousePressEvent(QMouseEvent* event) {
  if (drawable()) hand_.press(*event, frame().window);
}

void MemoryChart::mouseMoveEvent(QMouseEvent* event) {
  if (hand_.drag() == TimeHand::Drag::none) return set_hover(event->position());
  const Frame f = frame();
  if (hand_.begins(*event, f.ruler.contains(hand_.pressed_at()))) clear_hover();
  if (hand_.drag() != TimeHand::Drag::waiting) hand_.move(event->position(), f.window);
}

void MemoryChart::mouseReleaseEvent(QMouseEvent* event) {
  if (hand_.release() && selection_ && frame().ruler.contains(event->position()))
    selection_->pick_time_range(std::nullopt);
  set_hover(event->position());
}

void MemoryChart::mouseDoubleClickEvent(QMouseEvent* event) {
  hand_.cancel();
  if (event->button() != Qt::LeftButton || !drawable()) return;
  if (follows() && selection_->time_range() && frame().ruler.contains(event->position())) {
    const auto [from, to] = *selection_->time_range();
    return show_time(from, to);
  }
  zoom_->fit();
}

void MemoryChart::wheelEvent(QWheelEvent* event) {
  event->accept();
  if (!drawable()) return;
  hand_.wheel(*event, frame().window);
  set_hover(event->position());
}

void MemoryChart::set_hover(QPointF position) {
  pointer_ = position;
  HoverText text;
  std::optional<double> instant;
  const Frame f = frame();
  if (drawable() && (f.plot.contains(position) || f.ruler.contains(position))) {
    const double at = f.window.at(position.x());
    if (at >= 0 && at <= time().makespan()) {
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
  switch (event->key()) {
    case Qt::Key_Up: emit device_stepped(-1); return;
    case Qt::Key_Down: emit device_stepped(1); return;
    case Qt::Key_P:
      if (drawable()) {
        // The peak in the middle of a tenth of the makespan.
        const double at = summary_->schedule()->devices[device_].peak_at_s, half = time().makespan() * 0.05;
        return show_time(at - half, at + half);
      }
      break;
    case Qt::Key_Escape:
      if (!hover_text_.empty()) return clear_hover();
      if (follows() && selection_->time_range()) return selection_->pick_time_range(std::nullopt);
      break;
    default: break;
  }
  if (hand_.key(*event)) return;
  QWidget::keyPressEvent(event);
}

void MemoryChart::contextMenuEvent(QContextMenuEvent* event) {
  if (!drawable()) return;
  QMenu menu(this);
  const QString words = plain_text(hover_text_);
  QAction* copy = menu.addAction(tr("Copy"), this, [words] { QApplication::clipboard()->setText(words); });
  copy->setEnabled(!words.isEmpty());
  menu.addAction(tr("Fit all"), zoom_.get(), &TimeZoom::fit);
  menu.addSeparator();
  add_picture_actions(&menu, this);
  clear_hover();
  menu.exec(event->globalPos());
}

}  // namespace turnpoint::views
