// SPDX-License-Identifier: Apache-2.0
// The graph of the model, coloured by the picked plan: view tool bar, canvas, legend with mini-map.
#pragma once

#include <QComboBox>
#include <QJsonObject>
#include <QLabel>
#include <QTimer>
#include <QWidget>
#include <memory>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "views/common/configuration_colors.h"
#include "views/common/selection_model.h"
#include "views/graph/graph_canvas.h"
#include "views/graph/layout_service.h"

namespace turnpoint::views {

class GraphLegend;

class GraphView : public QWidget {
  Q_OBJECT
 public:
  explicit GraphView(QWidget* parent = nullptr);

  /// Another model of the same name and operators (another batch) keeps fold state, zoom and colours.
  void set_model(ModelPtr model);
  /// Null: neutral colours. A plan whose scenario holds another model brings that model along.
  /// `ratio`: the ratio plan whose levels the plan has as axes; it is offered one more colour.
  /// `typed`: as PlanFigures::make() has it.
  void set_plan(std::shared_ptr<const Plan> plan, ScenarioPtr scenario, RatioPlanPtr ratio = nullptr,
                bool typed = false);
  /// How the plan differs from another: one more colour is offered. Null: it stands beside none.
  void set_difference(DifferenceMarksPtr difference);
  void show_difference();  ///< in that colour
  void set_selection(SelectionModel* selection);
  /// One set of colours for several views; views with the same selection share theirs by themselves.
  void share_colors(std::shared_ptr<ConfigurationColors> colors);
  std::shared_ptr<ConfigurationColors> colors() const { return colors_; }

  /// The whole graph as it is folded and coloured, for pictures.
  void paint_to(QPainter& painter, QSize size);
  QJsonObject save_state() const;  ///< open layers, colouring, edge measure
  void restore_state(const QJsonObject& state);

  /// Hand this to QDockWidget::setTitleBarWidget, or leave it on top of the view.
  QWidget* tool_bar() const { return tool_bar_; }
  GraphCanvas* canvas() const { return canvas_; }
  GraphLegend* legend() const { return legend_; }
  LayoutService* layout_service() { return &layouts_; }
  QString layout_text() const { return layout_label_->text(); }

  enum Fold { layers, operators, outline };
  void set_fold(Fold fold);
  void fit() { canvas_->fit(); }

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  ///< of the tool bar

 private:
  ModelPtr model_;
  std::shared_ptr<const Hierarchy> hierarchy_;
  std::shared_ptr<const Plan> plan_;
  ScenarioPtr scenario_;
  RatioPlanPtr ratio_;
  bool typed_ = false;
  DifferenceMarksPtr difference_;
  PlanFiguresPtr figures_;
  std::shared_ptr<ConfigurationColors> colors_ = std::make_shared<ConfigurationColors>();
  QPointer<SelectionModel> selection_;
  FoldState fold_;
  QJsonObject pending_state_;
  std::shared_ptr<GraphScene> scene_;
  OperatorId anchor_;
  bool show_anchor_ = false;
  double built_width_ = 0;

  LayoutService layouts_;
  QTimer late_timer_, resize_timer_;
  QHash<QByteArray, LevelLayoutPtr> stand_ins_;

  QWidget* tool_bar_;
  QComboBox *color_box_, *edge_box_, *fold_box_;
  /// What was chosen last; plans without a ratio, or beside no other, are shown by configuration.
  GraphColor wanted_ = GraphColor::configuration;
  QLabel *mesh_label_, *zoom_label_, *layout_label_;
  GraphCanvas* canvas_;
  GraphLegend* legend_;

  void make_tool_bar();
  void make_figures();
  void offer(GraphColor color, bool has, const QString& text, const QString& tip);
  void choose_color(GraphColor color);
  GraphColor color() const { return static_cast<GraphColor>(color_box_->currentData().toInt()); }
  EdgeMeasure edge_measure() const { return static_cast<EdgeMeasure>(edge_box_->currentIndex()); }
  void request_scene();
  void build_scene(bool with_stand_ins);
  void recolor();
  void update_labels();
  void toggle_fold(std::uint32_t group, bool open);
  void apply_fold(Fold fold);
  QStringList expanded_paths() const;
  void expand_paths(const QStringList& paths);
};

}  // namespace turnpoint::views
