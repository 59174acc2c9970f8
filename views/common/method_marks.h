// SPDX-License-Identifier: Apache-2.0
// The shape of each method: colour never stands alone.
#pragma once

#include <QColor>
#include <QPainterPath>
#include <QPen>
#include <QPixmap>
#include <QString>

#include "views/common/method_style.h"

class QPainter;

namespace turnpoint::views {

/// Outline of a marker around (0, 0) with about the given radius.
QPainterPath shape_path(MethodShape shape, double radius);
/// Outline of a method's marker around (0, 0) with about the given radius.
QPainterPath method_shape(const QString& method, double radius);

/// A method's marker: filled where the plan fits, hollow over `hollow_fill` where it does not. Rendered once for one
/// pixel ratio, since charts draw hundreds of them a frame.
class MethodMarker {
 public:
  MethodMarker(const QString& method, double radius, const QColor& color, bool hollow, const QColor& hollow_fill,
               double pixel_ratio);
  /// The rendered marker with its centre at `at`, in logical pixels whatever the pixel ratio.
  void draw(QPainter& painter, QPointF at) const;
  /// The same as an outline, for files and for other scales.
  void draw_outline(QPainter& painter, QPointF at) const;

 private:
  QPainterPath shape_;
  QPen pen_;
  QColor fill_;
  double centre_ = 0;  ///< of the pixmap, in logical pixels
  QPixmap pixmap_;
};

/// Line with marker (a frontier method) or marker alone, centred in `area`.
void draw_method_swatch(QPainter& painter, const QRect& area, const QString& method, bool frontier,
                        const QColor& color);

/// Marker radius in logical pixels of points in the chart.
double method_radius(const QString& method);

}  // namespace turnpoint::views
