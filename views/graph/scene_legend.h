// SPDX-License-Identifier: Apache-2.0
// What the columns right of both graphs share: rows of colours, a scale of line widths, the mini-map.
#pragma once

#include <QPen>
#include <QPixmap>
#include <QWidget>
#include <initializer_list>

#include "views/graph/scene_canvas.h"

namespace turnpoint::views {

/// A small picture of the whole scene; the frame is what the canvas shows, dragging it scrolls.
class MiniMap : public QWidget {
  Q_OBJECT
 public:
  explicit MiniMap(SceneCanvas* canvas, QWidget* parent = nullptr);
  void refresh();  ///< scene or colours changed

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  SceneCanvas* canvas_;
  QPixmap picture_;
  bool stale_ = true;
  double scale() const;
  QPointF corner() const;
};

class SceneLegend : public QWidget {
  Q_OBJECT
 public:
  MiniMap* mini_map() const { return map_; }

 protected:
  static constexpr int kPad = 10, kSwatch = 11, kLeastMap = 44, kMostMap = 110;
  struct LineWidth {
    QPen pen;
    QString text;
  };

  SceneLegend(SceneCanvas* canvas, QWidget* parent);
  virtual int row_at(QPoint position) const = 0;  ///< -1: none
  virtual QString tip_of(int row) const = 0;      ///< of a row that is there

  int row_height() const;
  QRect first_line() const { return {kPad, kPad, width() - 2 * kPad, row_height()}; }
  void place_map(int top);  ///< at the bottom, where there is room below `top`
  void paint_ground(QPainter& painter) const;
  /// The font after it is that of rows.
  void paint_title(QPainter& painter, const QRect& line, const QString& title) const;
  void paint_row(QPainter& painter, const QRect& row, const QColor& color, const QString& text,
                 const QString& value) const;
  void paint_widths(QPainter& painter, const QRect& line, const std::vector<LineWidth>& widths, double gap) const;
  bool event(QEvent* event) override;

 private:
  MiniMap* map_;
};

}  // namespace turnpoint::views
