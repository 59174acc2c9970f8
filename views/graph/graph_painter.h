// SPDX-License-Identifier: Apache-2.0
// Paints a GraphScene: the same code for the screen, for pictures and for the mini-map's background. Never more
// primitives than pixels: three tiers by the width of an operator.
#pragma once

#include <QFont>
#include <QPainter>
#include <memory>
#include <set>

#include "views/common/plan_figures.h"
#include "views/common/theme_colors.h"
#include "views/graph/graph_scene.h"
#include "views/graph/scene_canvas.h"
#include "views/graph/told_apart.h"

namespace turnpoint::views {

enum class GraphTier { far, middle, near };

struct GraphPaint : SceneView {
  const PlanFigures* figures = nullptr;
  GraphColor color = GraphColor::configuration;

  GraphTier tier(const GraphScene& scene) const {
    const double width = scene.typical_width * zoom;
    return width < 12 ? GraphTier::far : width <= 44 ? GraphTier::middle : GraphTier::near;
  }
};

/// Slightly smaller than the widget's; below 100 % they shrink with the graph as far as they stay readable.
QFont graph_name_font(const QFont& base, double zoom = 1);  ///< bold
QFont graph_small_font(const QFont& base, double zoom = 1);

/// Keeps elided texts and scratch buffers between frames, so that a frame allocates next to nothing.
class GraphPainter {
 public:
  void paint(QPainter& painter, const GraphScene& scene, const GraphPaint& view);
  /// Outlines on top: selected operators, the hovered one, the keyboard's place (an operator or a card).
  void paint_marks(QPainter& painter, const GraphScene& scene, const GraphPaint& view,
                   const std::set<OperatorId>& selected, OperatorId hovered, int focus_card, int focus_drawn) const;

  /// Arcs from a card to those it exchanges tensors with beyond its neighbours.
  void paint_links(QPainter& painter, const GraphScene& scene, const GraphPaint& view, int card,
                   const std::vector<CardLink>& links) const;

  static QColor fill_color(const GraphPaint& view, int index);
  static QColor text_color(const GraphPaint& view, int index);

 private:
  const GraphScene* texts_of_ = nullptr;
  double texts_zoom_ = 0;
  QFont texts_font_, name_font_, small_font_;  // of the current frame
  std::vector<QString> operator_texts_, card_texts_;
  std::vector<NamePart> card_parts_;
  std::vector<QPointF> line_;
  std::vector<QRectF> boxes_[8];

  void paint_edges(QPainter& painter, const GraphScene& scene, const GraphPaint& view, std::uint32_t begin,
                   std::uint32_t end, bool wide_only);
  void paint_folded(QPainter& painter, const GraphCard& card, std::size_t index, const GraphPaint& view, bool texts);
  void paint_shares(QPainter& painter, const GraphCard& card, const QRectF& bar, const GraphPaint& view) const;
  void paint_open(QPainter& painter, const GraphScene& scene, const GraphCard& card, std::size_t index,
                  const GraphPaint& view, GraphTier tier);
  void paint_operators(QPainter& painter, const GraphScene& scene, const GraphCard& card, const GraphPaint& view);
  void paint_operator_text(QPainter& painter, const GraphScene& scene, std::uint32_t drawn, const QRectF& box,
                           const GraphPaint& view);
};

}  // namespace turnpoint::views
