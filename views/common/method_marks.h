// SPDX-License-Identifier: Apache-2.0
// The shape of each method (mock-up sheet, section 5): colour never stands alone.
#pragma once

#include <QColor>
#include <QPainterPath>
#include <QPixmap>
#include <QString>

class QPainter;

namespace turnpoint::views {

/// Outline of a method's marker around (0, 0) with about the given radius.
QPainterPath method_shape(const QString& method, double radius);

/// A marker as a pixmap: filled where the plan fits, hollow over `hollow_fill` where it does not.
QPixmap method_marker(const QString& method, double radius, const QColor& color, bool hollow, const QColor& hollow_fill,
                      double pixel_ratio);

/// Line with marker (a frontier method) or marker alone, centred in `area`.
void draw_method_swatch(QPainter& painter, const QRect& area, const QString& method, bool frontier,
                        const QColor& color);

/// Marker radius in logical pixels of points in the chart.
double method_radius(const QString& method);

}  // namespace turnpoint::views
