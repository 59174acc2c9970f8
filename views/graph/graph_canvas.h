// SPDX-License-Identifier: Apache-2.0
// The surface of the model's graph: paints a GraphScene and turns mouse and keys into selection, hover and fold
// requests.
#pragma once

#include <QPointer>
#include <memory>

#include "views/common/selection_model.h"
#include "views/graph/graph_painter.h"
#include "views/graph/graph_scene.h"
#include "views/graph/hover_text.h"
#include "views/graph/scene_canvas.h"

namespace turnpoint::views {

class GraphCanvas : public SceneCanvas {
  Q_OBJECT
 public:
  explicit GraphCanvas(QWidget* parent = nullptr);

  /// `anchor`: an operator whose card keeps its place on the screen if it can.
  void set_scene(ModelPtr model, std::shared_ptr<GraphScene> scene, OperatorId anchor = {});
  void set_figures(PlanFiguresPtr figures, GraphColor color);  ///< after decorate()
  void set_selection(SelectionModel* selection);

  const GraphScene* scene() const { return scene_.get(); }
  QSizeF scene_size() const override { return scene_ && !scene_->cards.empty() ? scene_->size : QSizeF(); }
  void show_card(int card, bool readable);
  void show_operator(OperatorId op);
  /// Whether anybody answers why the plan on show is as it is; and what other choices for its parts would cost.
  void set_askable(bool plan, bool choices) { askable_ = plan, has_choices_ = choices; }
  const HoverText& hover_text() const { return hover_text_; }
  const std::vector<CardLink>& hover_links() const { return links_; }
  int current_card() const { return focus_card_; }
  OperatorId current_operator() const;

 signals:
  /// Of what is picked now, or of the same operator in every layer.
  void why_requested(bool in_every_layer);
  void toggle_fold(std::uint32_t group, bool open);
  void fold_container(std::uint32_t group,
                      OperatorId op);  ///< of a folded card, or of a lone operator where group is kNoGroup

 protected:
  void paint_scene(QPainter& painter, const SceneView& view, bool picture) override;
  void paint_overlay(QPainter& painter, const SceneView& view) override;
  void point_at(QPointF device) override;
  void clear_hover() override;
  void click(QPointF device, Qt::KeyboardModifiers modifiers) override;
  void double_click(QPointF device) override;
  void focused_by_keyboard() override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  ModelPtr model_;
  std::shared_ptr<GraphScene> scene_;
  PlanFiguresPtr figures_;
  GraphColor color_ = GraphColor::configuration;
  QPointer<SelectionModel> selection_;
  GraphPainter painter_;
  bool changing_selection_ = false, askable_ = true, has_choices_ = true;
  SceneHit hover_;
  HoverText hover_text_;
  std::vector<CardLink> links_;  ///< of the card under the pointer
  int linked_card_ = -1;
  QPointF pointer_;
  int focus_card_ = -1, focus_drawn_ = -1;

  GraphPaint graph_paint(const SceneView& view) const;
  GraphTier tier() const { return graph_paint(view()).tier(*scene_); }
  void set_hover(const SceneHit& hit, QPointF device);
  SceneHit hit_at(QPointF device) const;
  std::set<OperatorId> operators_at(const SceneHit& hit) const;
  void pick(const SceneHit& hit, bool add);
  void activate(const SceneHit& hit);
  void set_focus_item(int card, int drawn, bool pick_it);
  void step_to(int dx, int dy);
  int neighbour_operator(int drawn, int dx, int dy) const;
  int neighbour_card(int card, int dx, int dy) const;
  void selection_changed();
  void fold_current();
};

}  // namespace turnpoint::views
