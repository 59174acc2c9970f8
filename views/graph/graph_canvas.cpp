// SPDX-License-Identifier: Apache-2.0
#include "views/graph/graph_canvas.h"

#include <QPainter>

namespace turnpoint::views {

GraphCanvas::GraphCanvas(QWidget* parent) : SceneCanvas(parent) { setAccessibleName(tr("Graph of the model")); }

void GraphCanvas::set_scene(ModelPtr model, std::shared_ptr<GraphScene> scene, OperatorId anchor) {
  const bool same_model = model == model_ && scene_;
  QPointF before;
  const OperatorId focus = current_operator();
  const bool on_operator = focus_drawn_ >= 0;
  if (same_model && anchor.valid() && scene_->card_of[anchor] >= 0)
    before = to_device(scene_->cards[static_cast<std::size_t>(scene_->card_of[anchor])].rect.topLeft());
  model_ = std::move(model);
  scene_ = std::move(scene);
  // A new scene may lie where the old one did: nothing kept of that one must live on.
  painter_ = {};
  hover_ = {};
  hover_text_.clear();
  links_.clear();
  linked_card_ = -1;
  focus_card_ = focus_drawn_ = -1;
  if (same_model && focus.valid() && scene_) {
    focus_card_ = scene_->card_of[focus];
    focus_drawn_ = on_operator ? scene_->drawn_of[focus] : -1;
  }
  if (!same_model || fitted()) {
    fit();
  } else {
    update_scroll_bars();
    if (anchor.valid() && scene_->card_of[anchor] >= 0) {
      const QRectF rect = scene_->cards[static_cast<std::size_t>(scene_->card_of[anchor])].rect;
      scroll_by(to_device(rect.topLeft()) - before);
    }
  }
  repaint_all();
}

void GraphCanvas::set_figures(PlanFiguresPtr figures, GraphColor color) {
  figures_ = std::move(figures);
  color_ = color;
  // The box under a resting pointer shows the new plan's numbers.
  if (scene_ && (hover_.card >= 0 || hover_.edge >= 0)) set_hover(hover_, pointer_);
  repaint_all();
}

void GraphCanvas::set_selection(SelectionModel* selection) {
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  if (selection_) {
    connect(selection_, &SelectionModel::operators_changed, this, &GraphCanvas::selection_changed);
    connect(selection_, &SelectionModel::hovered_operator_changed, this, [this] { viewport()->update(); });
  }
  viewport()->update();
}

void GraphCanvas::selection_changed() {
  viewport()->update();
  if (changing_selection_ || !selection_ || selection_->operators().empty() || !scene_) return;
  const OperatorId first = *selection_->operators().begin();
  if (first.index < scene_->card_of.size()) show_operator(first);
}

GraphPaint GraphCanvas::graph_paint(const SceneView& view) const {
  GraphPaint paint;
  static_cast<SceneView&>(paint) = view;
  paint.figures = figures_.get();
  paint.color = color_;
  return paint;
}

void GraphCanvas::show_card(int card, bool readable) {
  if (!scene_ || card < 0 || card >= static_cast<int>(scene_->cards.size())) return;
  show_rect(scene_->cards[static_cast<std::size_t>(card)].rect, readable);
}

void GraphCanvas::show_operator(OperatorId op) {
  if (!scene_ || op.index >= scene_->card_of.size() || scene_->card_of[op] < 0) return;
  const int drawn = scene_->drawn_of[op];
  if (drawn < 0) return show_card(scene_->card_of[op], false);
  const auto d = static_cast<std::size_t>(drawn);
  const QRectF box(to_device(QPointF(scene_->op_x[d], scene_->op_y[d])),
                   QSizeF(scene_->op_w[d], scene_->op_h[d]) * zoom());
  if (!QRectF(viewport()->rect()).contains(box))
    center_on({scene_->op_x[d] + scene_->op_w[d] / 2.0, scene_->op_y[d] + scene_->op_h[d] / 2.0});
}

OperatorId GraphCanvas::current_operator() const {
  if (!scene_ || focus_card_ < 0) return {};
  if (focus_drawn_ >= 0) return scene_->op_id[static_cast<std::size_t>(focus_drawn_)];
  return scene_->members[scene_->cards[static_cast<std::size_t>(focus_card_)].member_begin];
}

void GraphCanvas::paint_scene(QPainter& painter, const SceneView& view, bool picture) {
  GraphPainter own;
  (picture ? own : painter_).paint(painter, *scene_, graph_paint(view));
}

void GraphCanvas::paint_overlay(QPainter& painter, const SceneView& view) {
  const GraphPaint paint = graph_paint(view);
  static const std::set<OperatorId> none;
  painter_.paint_marks(painter, *scene_, paint, selection_ ? selection_->operators() : none,
                       selection_ ? selection_->hovered_operator() : OperatorId{},
                       hasFocus() && by_keyboard_ ? focus_card_ : -1, focus_drawn_);
  if (linked_card_ >= 0) painter_.paint_links(painter, *scene_, paint, linked_card_, links_);
  if (!panning()) paint_hover(painter, hover_text_, pointer_, view.viewport, *view.theme, view.font);
}

}  // namespace turnpoint::views
