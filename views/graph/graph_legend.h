// SPDX-License-Identifier: Apache-2.0
// The column right of the graph: what the colours mean with their share of time, what edge widths mean, and the
// mini-map.
#pragma once

#include <QPointer>
#include <vector>

#include "views/common/selection_model.h"
#include "views/graph/graph_canvas.h"
#include "views/graph/scene_legend.h"

namespace turnpoint::views {

struct GraphLegendRow {
  int color = 0;
  QString text, value;
  /// Of the plan's figures; empty for steps of heat, of a ratio or of a difference.
  std::vector<std::uint32_t> configurations;
  std::vector<OperatorId> operators;  ///< of a step of a ratio or a difference; else empty
};
/// Configurations, in ratio plans with the types that they are, by share of time with all that share the last colour in
/// one row, or five steps of heat, or those steps of a ratio that the plan has, each with what its operators have of
/// it, the stronger half's largest part first, or how many operators differ, and how far.
std::vector<GraphLegendRow> legend_rows(const PlanFigures& figures, const ConfigurationColors& colors,
                                        GraphColor color);

class GraphLegend : public SceneLegend {
  Q_OBJECT
 public:
  GraphLegend(GraphCanvas* canvas, QWidget* parent = nullptr);
  void set_figures(PlanFiguresPtr figures, const ConfigurationColors& colors, GraphColor color, EdgeMeasure edges);
  void set_selection(SelectionModel* selection) { selection_ = selection; }
  const std::vector<GraphLegendRow>& rows() const { return rows_; }
  QString title() const;         ///< as far as there is room beside what stands at its right
  QString beside_title() const;  ///< what the rows' values are; empty: the title says it
  /// What the types that the rows name are, a line each; of plans with types, coloured by configuration, alone.
  const std::vector<PartitionType>& key() const { return key_; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  int row_at(QPoint position) const override;
  QString tip_of(int row) const override;

 private:
  QPointer<SelectionModel> selection_;
  PlanFiguresPtr figures_;
  std::vector<GraphLegendRow> rows_;
  std::vector<PartitionType> key_;
  GraphColor color_ = GraphColor::configuration;
  EdgeMeasure edges_ = EdgeMeasure::bytes;
  int width_for_rows() const;
  QRect key_line(std::size_t line) const;
  void paint_key(QPainter& painter) const;
  void paint_edge_scale(QPainter& painter, int top) const;
};

}  // namespace turnpoint::views
