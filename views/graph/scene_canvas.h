// SPDX-License-Identifier: Apache-2.0
// The scrolling, zooming surface that pictures of graphs share: one widget that paints itself from a cached frame with
// marks on top, pans by dragging, zooms at the pointer, fits, and knows what its mini-map needs. What is painted and
// what a click means is the subclass's.
#pragma once

#include <QAbstractScrollArea>
#include <QPixmap>

#include "views/common/theme_colors.h"

namespace turnpoint::views {

/// device = scene * zoom + offset
struct SceneView {
  double zoom = 1;
  QPointF offset;
  QRectF viewport;  ///< device
  const ThemeColors* theme = nullptr;
  QFont font;  ///< the widget's

  QPointF map(QPointF p) const { return p * zoom + offset; }
  QRectF map(const QRectF& r) const { return {map(r.topLeft()), r.size() * zoom}; }
};

class SceneCanvas : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit SceneCanvas(QWidget* parent = nullptr);

  virtual QSizeF scene_size() const = 0;  ///< empty: there is nothing to show
  void set_empty_text(const QString& text);

  double zoom() const { return zoom_; }
  void set_zoom(double zoom, QPointF anchor_device);
  void fit();  ///< everything visible, at most 100 %
  bool fitted() const { return fitted_; }
  QRectF visible_scene() const;
  void center_on(QPointF scene_position);
  /// Scrolls no further than needed; `readable` zooms in first where texts would be too small.
  void show_rect(const QRectF& scene, bool readable);
  QPointF to_device(QPointF scene_position) const;
  qint64 last_frame_ns() const { return last_frame_ns_; }  ///< of the scene below the marks
  /// Of a picture of the whole scene: its size at 100 %, less where that is more than 8,192 either way.
  QSize picture_size() const;
  /// For pictures: the whole scene scaled into `size`.
  void paint_to(QPainter& painter, const QSizeF& size, const ThemeColors& theme);

 signals:
  void zoom_changed(double zoom);
  void view_changed();

 protected:
  /// `picture`: not for the screen, so caches of the screen's texts are left alone.
  virtual void paint_scene(QPainter& painter, const SceneView& view, bool picture) = 0;
  virtual void paint_overlay(QPainter& painter, const SceneView& view) = 0;
  virtual void point_at(QPointF device) = 0;
  virtual void clear_hover() = 0;
  virtual void click(QPointF device, Qt::KeyboardModifiers modifiers) = 0;
  virtual void double_click(QPointF device) = 0;
  virtual void focused_by_keyboard() {}

  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void changeEvent(QEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

  SceneView view() const;
  QPointF to_scene(QPointF device) const;
  void update_scroll_bars();
  void repaint_all();
  void scroll_by(QPointF device);
  bool zoom_key(QKeyEvent* event);  ///< F, +, -, Ctrl+0; false: another key
  bool panning() const { return panning_; }
  void set_least_zoom(double zoom) { least_zoom_ = zoom; }

  bool by_keyboard_ = false;  ///< the keyboard's place is worth showing

 private:
  QString empty_text_;
  QPixmap frame_;
  bool frame_stale_ = true, fitted_ = true;
  double zoom_ = 1, least_zoom_ = 0.01;
  bool pressed_ = false, panning_ = false;
  QPoint press_, last_;
  qint64 last_frame_ns_ = 0;

  QPointF origin() const;  ///< device position of the scene's corner
};

}  // namespace turnpoint::views
