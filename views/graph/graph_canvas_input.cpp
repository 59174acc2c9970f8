// SPDX-License-Identifier: Apache-2.0
// Mouse, wheel and keys of the graph canvas.
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <cmath>
#include <limits>

#include "views/graph/graph_canvas.h"

namespace turnpoint::views {

namespace {

constexpr double kEdgeReach = 5;  // device pixels

}  // namespace

SceneHit GraphCanvas::hit_at(QPointF device) const {
  if (!scene_) return {};
  SceneHit hit = hit_test(*scene_, to_scene(device), kEdgeReach / zoom());
  // What is not painted as such cannot be hit.
  if (tier() == GraphTier::far) hit.drawn = hit.edge = -1, hit.header = false;
  return hit;
}

std::set<OperatorId> GraphCanvas::operators_at(const SceneHit& hit) const {
  std::set<OperatorId> operators;
  if (hit.drawn >= 0) {
    operators.insert(scene_->op_id[static_cast<std::size_t>(hit.drawn)]);
  } else if (hit.edge >= 0) {
    const auto e = static_cast<std::size_t>(hit.edge);
    for (std::uint32_t u = scene_->use_begin[e]; u < scene_->use_begin[e + 1]; ++u) {
      operators.insert(scene_->uses[u].producer);
      operators.insert(scene_->uses[u].consumer);
    }
  } else if (hit.card >= 0) {
    const GraphCard& card = scene_->cards[static_cast<std::size_t>(hit.card)];
    if (card.open && !hit.header && tier() != GraphTier::far) return operators;  // the empty ground of an open card
    operators.insert(scene_->members.begin() + card.member_begin, scene_->members.begin() + card.member_end);
  }
  return operators;
}

void GraphCanvas::pick(const SceneHit& hit, bool add) {
  if (!selection_) return;
  const auto operators = operators_at(hit);
  changing_selection_ = true;
  if (!add) {
    selection_->pick_operators(operators);
  } else if (!operators.empty()) {
    auto all = selection_->operators();
    const bool have = std::includes(all.begin(), all.end(), operators.begin(), operators.end());
    for (const OperatorId op : operators) have ? void(all.erase(op)) : void(all.insert(op));
    selection_->pick_operators(std::move(all));
  }
  changing_selection_ = false;
}

void GraphCanvas::activate(const SceneHit& hit) {
  if (hit.drawn >= 0) {
    const auto d = static_cast<std::size_t>(hit.drawn);
    const QPointF center(scene_->op_x[d] + scene_->op_w[d] / 2.0, scene_->op_y[d] + scene_->op_h[d] / 2.0);
    set_zoom(zoom() < 2 ? 2.2 : 1.0, to_device(center));
    center_on(center);
  } else if (hit.card >= 0) {
    const GraphCard& card = scene_->cards[static_cast<std::size_t>(hit.card)];
    if (card.group == kNoGroup) return pick(hit, false);
    if (!scene_->lone_panel) emit toggle_fold(card.group, !card.open);
  } else if (hit.edge < 0) {
    fit();
  }
}

void GraphCanvas::point_at(QPointF device) { set_hover(hit_at(device), device); }

void GraphCanvas::click(QPointF device, Qt::KeyboardModifiers modifiers) {
  const SceneHit hit = hit_at(device);
  if (hit.header && to_scene(device).x() < scene_->cards[static_cast<std::size_t>(hit.card)].rect.left() + 18 &&
      !scene_->lone_panel) {
    activate({hit.card, -1, -1, true});
    return;
  }
  focus_card_ = hit.card, focus_drawn_ = hit.drawn;
  pick(hit, modifiers & Qt::ControlModifier);
  viewport()->update();
}

void GraphCanvas::double_click(QPointF device) {
  const SceneHit hit = hit_at(device);
  const bool ground =
      hit.card >= 0 && hit.drawn < 0 && !hit.header && scene_->cards[static_cast<std::size_t>(hit.card)].open;
  if (ground && tier() != GraphTier::far) return;
  activate(hit);
}

void GraphCanvas::set_hover(const SceneHit& hit, QPointF device) {
  pointer_ = device;
  hover_ = hit;
  HoverText text;
  OperatorId op;
  if (scene_ && model_) {
    if (hit.drawn >= 0) {
      op = scene_->op_id[static_cast<std::size_t>(hit.drawn)];
      text = operator_hover(*model_, op, figures_.get());
    } else if (hit.edge >= 0) {
      text = edge_hover(*model_, *scene_, hit.edge, figures_.get());
    } else if (hit.card >= 0) {
      const GraphCard& card = scene_->cards[static_cast<std::size_t>(hit.card)];
      if (card.group == kNoGroup) {
        op = card.op;
        text = operator_hover(*model_, op, figures_.get());
      } else if (!card.open || hit.header || tier() == GraphTier::far) {
        text = card_hover(*scene_, card, figures_.get());
      }
    }
  }
  const int linked = scene_ && model_ && hit.drawn < 0 && hit.edge < 0 && !text.empty() ? hit.card : -1;
  if (linked != linked_card_) links_ = linked >= 0 ? far_links(*model_, *scene_, linked) : std::vector<CardLink>{};
  linked_card_ = linked;
  const bool changed = !text.empty() || !hover_text_.empty();
  hover_text_ = std::move(text);
  if (selection_) selection_->hover_operator(op);
  if (changed) viewport()->update();
}

void GraphCanvas::clear_hover() { set_hover({}, pointer_); }

void GraphCanvas::focused_by_keyboard() {
  if (focus_card_ < 0 && scene_ && !scene_->cards.empty()) focus_card_ = 0;
}

int GraphCanvas::neighbour_operator(int drawn, int dx, int dy) const {
  const auto d = static_cast<std::size_t>(drawn);
  const GraphCard& card = scene_->cards[static_cast<std::size_t>(scene_->card_of[scene_->op_id[d]])];
  const auto centre = [&](std::size_t i) {
    return QPointF(scene_->op_x[i] + scene_->op_w[i] / 2.0, scene_->op_y[i] + scene_->op_h[i] / 2.0);
  };
  const QPointF here = centre(d);
  int best = -1;
  double best_distance = std::numeric_limits<double>::max();
  const auto consider = [&](std::size_t other) {
    const QPointF delta = centre(other) - here;
    const double distance =
        dx != 0 ? std::abs(delta.y()) + std::abs(delta.x()) * 0.25 : std::abs(delta.y()) + std::abs(delta.x()) * 3;
    if (distance < best_distance) best = static_cast<int>(other), best_distance = distance;
  };
  if (dx != 0) {
    // Left and right walk edges.
    for (std::uint32_t e = card.edge_begin; e < card.edge_end; ++e)
      for (std::uint32_t u = scene_->use_begin[e]; u < scene_->use_begin[e + 1]; ++u) {
        const EdgeUse& use = scene_->uses[u];
        const OperatorId other = dx > 0 ? use.consumer : use.producer;
        if ((dx > 0 ? use.producer : use.consumer) != scene_->op_id[d] || scene_->drawn_of[other] < 0) continue;
        if (scene_->card_of[other] == scene_->card_of[scene_->op_id[d]])
          consider(static_cast<std::size_t>(scene_->drawn_of[other]));
      }
    return best;
  }
  for (std::uint32_t other = card.drawn_begin; other < card.drawn_end; ++other)
    if (other != d && (centre(other).y() - here.y()) * dy > 4 && std::abs(centre(other).x() - here.x()) < 160)
      consider(other);
  return best;
}

int GraphCanvas::neighbour_card(int card, int dx, int dy) const {
  const int count = static_cast<int>(scene_->cards.size());
  if (dx != 0) return card + dx >= 0 && card + dx < count ? card + dx : -1;
  const QPointF here = scene_->cards[static_cast<std::size_t>(card)].rect.center();
  int best = -1;
  double best_distance = std::numeric_limits<double>::max();
  for (int c = 0; c < count; ++c) {
    const QRectF& rect = scene_->cards[static_cast<std::size_t>(c)].rect;
    if ((rect.center().y() - here.y()) * dy < 8) continue;
    const double off = here.x() < rect.left() ? rect.left() - here.x() : std::max(0.0, here.x() - rect.right());
    const double distance = std::abs(rect.center().y() - here.y()) * 1000 + off;
    if (distance < best_distance) best = c, best_distance = distance;
  }
  return best;
}

void GraphCanvas::set_focus_item(int card, int drawn, bool pick_it) {
  focus_card_ = card, focus_drawn_ = drawn;
  if (card < 0) return;
  if (drawn >= 0) {
    show_operator(scene_->op_id[static_cast<std::size_t>(drawn)]);
  } else {
    show_card(card, false);
  }
  if (pick_it) pick({card, drawn, -1, drawn < 0}, false);
  const HoverText text = drawn >= 0
                             ? operator_hover(*model_, scene_->op_id[static_cast<std::size_t>(drawn)], figures_.get())
                             : card_hover(*scene_, scene_->cards[static_cast<std::size_t>(card)], figures_.get());
  setAccessibleDescription(plain_text(text));
  viewport()->update();
}

void GraphCanvas::step_to(int dx, int dy) {
  if (focus_card_ < 0) return set_focus_item(0, -1, true);
  const GraphCard& card = scene_->cards[static_cast<std::size_t>(focus_card_)];
  if (focus_drawn_ >= 0) {
    const int next = neighbour_operator(focus_drawn_, dx, dy);
    if (next >= 0) return set_focus_item(focus_card_, next, true);
    if (dy != 0) return;
  } else if (card.open && dx > 0 && card.drawn_begin < card.drawn_end) {
    return set_focus_item(focus_card_, static_cast<int>(card.drawn_begin), true);
  }
  const int next = neighbour_card(focus_card_, dx, dy);
  if (next < 0) return;
  const GraphCard& other = scene_->cards[static_cast<std::size_t>(next)];
  const bool enter = dx < 0 && other.open && other.drawn_end > other.drawn_begin;
  set_focus_item(next, enter ? static_cast<int>(other.drawn_end) - 1 : -1, true);
}

void GraphCanvas::fold_current() {
  if (focus_card_ < 0 || scene_->lone_panel) return;
  const GraphCard& card = scene_->cards[static_cast<std::size_t>(focus_card_)];
  if (card.open) {
    focus_drawn_ = -1;
    emit toggle_fold(card.group, false);
  } else {
    emit fold_container(card.group, card.op);
  }
}

void GraphCanvas::keyPressEvent(QKeyEvent* event) {
  if (!scene_ || scene_->cards.empty()) return QAbstractScrollArea::keyPressEvent(event);
  by_keyboard_ = true;
  if (zoom_key(event)) return;
  switch (event->key()) {
    case Qt::Key_Left: return step_to(-1, 0);
    case Qt::Key_Right: return step_to(1, 0);
    case Qt::Key_Up: return step_to(0, -1);
    case Qt::Key_Down: return step_to(0, 1);
    case Qt::Key_Home: return set_focus_item(0, -1, true);
    case Qt::Key_End: return set_focus_item(static_cast<int>(scene_->cards.size()) - 1, -1, true);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (focus_card_ >= 0) activate({focus_card_, focus_drawn_, -1, false});
      return;
    case Qt::Key_Backspace: return fold_current();
    case Qt::Key_C:
      if ((event->modifiers() & Qt::ControlModifier) && focus_card_ >= 0) {
        QApplication::clipboard()->setText(accessibleDescription());
        return;
      }
      break;
    case Qt::Key_Escape:
      if (!hover_text_.empty()) return clear_hover();
      if (selection_ && !selection_->operators().empty()) return selection_->pick_operators({});
      break;
    default: break;
  }
  QAbstractScrollArea::keyPressEvent(event);
}

void GraphCanvas::contextMenuEvent(QContextMenuEvent* event) {
  if (!scene_ || scene_->cards.empty()) return;
  const SceneHit hit = event->reason() == QContextMenuEvent::Mouse ? hit_at(event->pos())
                                                                   : SceneHit{focus_card_, focus_drawn_, -1, true};
  set_hover(hit, pointer_);
  const QString words = plain_text(hover_text_);
  QMenu menu(this);
  QAction* copy = menu.addAction(tr("Copy"), this, [words] { QApplication::clipboard()->setText(words); });
  copy->setEnabled(!words.isEmpty());
  if (const auto operators = operators_at(hit); !operators.empty() && figures_) {
    const auto add = [&](const QString& text, const char* name, bool in_every_layer) {
      QAction* why = menu.addAction(text, this, [this, hit, in_every_layer] {
        focus_card_ = hit.card, focus_drawn_ = hit.drawn;
        pick(hit, false);
        emit why_requested(in_every_layer);
      });
      why->setObjectName(QString::fromLatin1(name));
      why->setEnabled(askable_);
    };
    add(tr("Why?"), "graph_why", false);
    if (operators.size() == 1 && has_choices_) add(tr("Why, in every layer?"), "graph_why_every_layer", true);
  }
  if (hit.card >= 0 && !scene_->lone_panel) {
    const GraphCard& card = scene_->cards[static_cast<std::size_t>(hit.card)];
    if (card.group != kNoGroup) {
      const auto group = card.group;
      const bool open = card.open;
      menu.addAction(open ? tr("Fold this layer") : tr("Unfold this layer"), this,
                     [this, group, open] { emit toggle_fold(group, !open); });
    }
  }
  menu.addAction(tr("Fit"), this, &GraphCanvas::fit);
  clear_hover();
  menu.exec(event->globalPos());
}

}  // namespace turnpoint::views
