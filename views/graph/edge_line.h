// SPDX-License-Identifier: Apache-2.0
// Lines between boxes, the same in every picture of graphs.
#pragma once

#include <QColor>
#include <QPainter>
#include <QPointF>
#include <vector>

namespace turnpoint::views {

/// Device coordinates. `rounded`: bends have a radius and the end an arrow, `zoom` being that of the picture.
void paint_edge_line(QPainter& painter, const std::vector<QPointF>& line, const QColor& color, double width,
                     bool rounded, double zoom);

double distance_to_line(QPointF p, QPointF a, QPointF b);

}  // namespace turnpoint::views
