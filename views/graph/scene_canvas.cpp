// SPDX-License-Identifier: Apache-2.0
#include "views/graph/scene_canvas.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

constexpr double kMostZoom = 6, kReadableZoom = 0.72, kZoomStep = 1.2;

}  // namespace

SceneCanvas::SceneCanvas(QWidget* parent) : QAbstractScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  setMinimumSize(160, 90);
}

void SceneCanvas::set_empty_text(const QString& text) {
  empty_text_ = text;
  viewport()->update();
}

QPointF SceneCanvas::origin() const {
  const QSizeF content = scene_size() * zoom_;
  if (content.isEmpty()) return {};
  const double x = std::max(0.0, std::floor((viewport()->width() - content.width()) / 2));
  const double y = std::max(0.0, std::floor((viewport()->height() - content.height()) / 2));
  return {x - horizontalScrollBar()->value(), y - verticalScrollBar()->value()};
}

QPointF SceneCanvas::to_device(QPointF scene_position) const { return scene_position * zoom_ + origin(); }
QPointF SceneCanvas::to_scene(QPointF device) const { return (device - origin()) / zoom_; }

SceneView SceneCanvas::view() const {
  SceneView view;
  view.zoom = zoom_;
  view.offset = origin();
  view.viewport = viewport()->rect();
  view.theme = &theme_colors(palette());
  view.font = font();
  return view;
}

void SceneCanvas::repaint_all() {
  frame_stale_ = true;
  viewport()->update();
}

void SceneCanvas::update_scroll_bars() {
  const QSizeF content = scene_size() * zoom_;
  const QSize view_size = viewport()->size();
  // Once zoomed, half a view of margin lets any place stay under the pointer.
  const QSize margin = fitted_ || content.isEmpty() ? QSize(0, 0) : view_size / 2;
  const auto beyond = [](double size, int room) { return std::max(0, static_cast<int>(std::ceil(size)) - room); };
  horizontalScrollBar()->setRange(-margin.width(), beyond(content.width(), view_size.width()) + margin.width());
  verticalScrollBar()->setRange(-margin.height(), beyond(content.height(), view_size.height()) + margin.height());
  horizontalScrollBar()->setPageStep(view_size.width());
  verticalScrollBar()->setPageStep(view_size.height());
  horizontalScrollBar()->setSingleStep(40);
  verticalScrollBar()->setSingleStep(40);
  frame_stale_ = true;
  emit view_changed();
}

void SceneCanvas::scroll_by(QPointF device) {
  horizontalScrollBar()->setValue(horizontalScrollBar()->value() + static_cast<int>(device.x()));
  verticalScrollBar()->setValue(verticalScrollBar()->value() + static_cast<int>(device.y()));
}

void SceneCanvas::set_zoom(double zoom, QPointF anchor) {
  zoom = std::clamp(zoom, least_zoom_, kMostZoom);
  if (scene_size().isEmpty() || zoom == zoom_) return;
  const QPointF still = to_scene(anchor);
  zoom_ = zoom;
  fitted_ = false;
  update_scroll_bars();
  const QPointF delta = to_device(still) - anchor;
  scroll_by(QPointF(std::round(delta.x()), std::round(delta.y())));
  repaint_all();
  emit zoom_changed(zoom_);
}

void SceneCanvas::fit() {
  fitted_ = true;
  const QSizeF size = scene_size();
  if (size.isEmpty()) return;
  const QSizeF room = maximumViewportSize();
  zoom_ = std::clamp(std::min(room.width() / size.width(), room.height() / size.height()), least_zoom_, 1.0);
  update_scroll_bars();
  horizontalScrollBar()->setValue(0);
  verticalScrollBar()->setValue(0);
  repaint_all();
  emit zoom_changed(zoom_);
}

QRectF SceneCanvas::visible_scene() const { return {to_scene(QPointF(0, 0)), QSizeF(viewport()->size()) / zoom_}; }

void SceneCanvas::center_on(QPointF scene_position) {
  scroll_by(to_device(scene_position) - QRectF(viewport()->rect()).center());
}

void SceneCanvas::show_rect(const QRectF& rect, bool readable) {
  if (readable && zoom_ < kReadableZoom) {
    const double wide = (viewport()->width() - 16) / rect.width();
    set_zoom(std::clamp(wide, kReadableZoom, 1.0), to_device(rect.center()));
  }
  const QRectF device(to_device(rect.topLeft()), rect.size() * zoom_), area = viewport()->rect();
  if (area.contains(device)) return;
  const auto move = [](double low, double high, double least, double most) {
    if (high - low > most - least || low < least) return low - least;
    return high > most ? high - most : 0.0;
  };
  scroll_by({move(device.left() - 8, device.right() + 8, area.left(), area.right()),
             move(device.top() - 8, device.bottom() + 8, area.top(), area.bottom())});
}

void SceneCanvas::paintEvent(QPaintEvent*) {
  const ThemeColors& theme = theme_colors(palette());
  if (scene_size().isEmpty()) {
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), theme.base);
    painter.setPen(theme.secondary);
    painter.drawText(viewport()->rect().adjusted(16, 0, -16, 0), Qt::AlignCenter | Qt::TextWordWrap, empty_text_);
    return;
  }
  const double ratio = devicePixelRatioF();
  const QSize pixels = (QSizeF(viewport()->size()) * ratio).toSize();
  if (frame_.size() != pixels) {
    frame_ = QPixmap(pixels);
    frame_.setDevicePixelRatio(ratio);
    frame_stale_ = true;
  }
  const SceneView seen = view();
  if (frame_stale_) {
    QElapsedTimer clock;
    clock.start();
    frame_.fill(theme.base);
    QPainter painter(&frame_);
    paint_scene(painter, seen, false);
    painter.end();
    frame_stale_ = false;
    last_frame_ns_ = clock.nsecsElapsed();
  }
  QPainter painter(viewport());
  painter.drawPixmap(0, 0, frame_);
  paint_overlay(painter, seen);
}

QSize SceneCanvas::picture_size() const {
  constexpr double kMost = 8192, kLeast = 64;
  QSizeF size = scene_size();
  if (size.isEmpty()) return {320, 200};
  size *= std::min(1.0, kMost / std::max(size.width(), size.height()));
  return size.expandedTo({kLeast, kLeast}).toSize();
}

void SceneCanvas::paint_to(QPainter& painter, const QSizeF& size, const ThemeColors& theme) {
  painter.fillRect(QRectF(QPointF(0, 0), size), theme.base);
  const QSizeF content = scene_size();
  if (content.isEmpty()) return;
  SceneView paint = view();
  paint.zoom = std::min(size.width() / content.width(), size.height() / content.height());
  paint.offset = {(size.width() - content.width() * paint.zoom) / 2,
                  (size.height() - content.height() * paint.zoom) / 2};
  paint.viewport = QRectF(QPointF(0, 0), size);
  paint.theme = &theme;
  paint_scene(painter, paint, true);
}

void SceneCanvas::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  if (fitted_) {
    fit();
  } else {
    update_scroll_bars();
  }
}

void SceneCanvas::scrollContentsBy(int, int) {
  repaint_all();
  emit view_changed();
}

void SceneCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange ||
      event->type() == QEvent::StyleChange)
    repaint_all();
  QAbstractScrollArea::changeEvent(event);
}

void SceneCanvas::mousePressEvent(QMouseEvent* event) {
  pressed_ = event->button() == Qt::LeftButton || event->button() == Qt::MiddleButton;
  panning_ = false;
  press_ = last_ = event->pos();
  by_keyboard_ = false;
}

void SceneCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (!pressed_) return point_at(event->position());
  if (!panning_ && (event->pos() - press_).manhattanLength() >= QApplication::startDragDistance()) {
    panning_ = true;
    clear_hover();
    viewport()->setCursor(Qt::ClosedHandCursor);
  }
  if (panning_) {
    scroll_by(last_ - event->pos());
    fitted_ = false;
  }
  last_ = event->pos();
}

void SceneCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const bool clicked = pressed_ && !panning_;
  pressed_ = panning_ = false;
  viewport()->unsetCursor();
  if (clicked && event->button() == Qt::LeftButton && !scene_size().isEmpty())
    click(event->position(), event->modifiers());
}

void SceneCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  pressed_ = false;
  if (event->button() == Qt::LeftButton && !scene_size().isEmpty()) double_click(event->position());
}

void SceneCanvas::wheelEvent(QWheelEvent* event) {
  if (event->modifiers() & Qt::ControlModifier) {
    set_zoom(zoom_ * std::pow(kZoomStep, event->angleDelta().y() / 120.0), event->position());
    event->accept();
    return;
  }
  if (event->modifiers() & Qt::ShiftModifier) {
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() -
                                    (event->angleDelta().y() + event->angleDelta().x()));
    event->accept();
    return;
  }
  QAbstractScrollArea::wheelEvent(event);
}

bool SceneCanvas::zoom_key(QKeyEvent* event) {
  const QPointF middle = QRectF(viewport()->rect()).center();
  switch (event->key()) {
    case Qt::Key_F: fit(); return true;
    case Qt::Key_Plus:
    case Qt::Key_Equal: set_zoom(zoom_ * kZoomStep, middle); return true;
    case Qt::Key_Minus: set_zoom(zoom_ / kZoomStep, middle); return true;
    case Qt::Key_0:
      if (!(event->modifiers() & Qt::ControlModifier)) return false;
      fit();
      return true;
    default: return false;
  }
}

bool SceneCanvas::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) clear_hover();
  return QAbstractScrollArea::viewportEvent(event);
}

void SceneCanvas::focusInEvent(QFocusEvent* event) {
  by_keyboard_ = event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason ||
                 event->reason() == Qt::ShortcutFocusReason;
  if (by_keyboard_) focused_by_keyboard();
  QAbstractScrollArea::focusInEvent(event);
  viewport()->update();
}

void SceneCanvas::focusOutEvent(QFocusEvent* event) {
  QAbstractScrollArea::focusOutEvent(event);
  viewport()->update();
}

}  // namespace turnpoint::views
