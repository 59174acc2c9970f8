// SPDX-License-Identifier: Apache-2.0
// The words of the graph's hover box: what an operator, an edge or a card is and costs.
#pragma once

#include <QPainter>
#include <QString>
#include <vector>

#include "views/common/theme_colors.h"
#include "views/graph/graph_scene.h"

namespace turnpoint::views {

struct HoverRow {
  QString left, right;
};
/// The first row is the title.
using HoverText = std::vector<HoverRow>;

HoverText operator_hover(const Model& model, OperatorId op, const PlanFigures* figures);
HoverText edge_hover(const Model& model, const GraphScene& scene, int edge, const PlanFigures* figures);
HoverText card_hover(const GraphScene& scene, const GraphCard& card, const PlanFigures* figures);
QString plain_text(const HoverText& text);  ///< tab and line separated, for copying and screen readers

/// Paints the box near `anchor` so that it stays inside `area` and beside the pointer.
void paint_hover(QPainter& painter, const HoverText& text, QPointF anchor, const QRectF& area, const ThemeColors& theme,
                 const QFont& font);

QString kind_text(OperatorKind kind);

}  // namespace turnpoint::views
