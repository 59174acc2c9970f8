// SPDX-License-Identifier: Apache-2.0
#include "views/graph/graph_canvas.h"

#include <QElapsedTimer>
#include <QPaintEvent>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

constexpr double kLeastZoom = 0.01, kMostZoom = 6, kReadableZoom = 0.72;

}  // namespace

GraphCanvas::GraphCanvas(QWidget* parent) : QAbstractScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Graph of the model"));
  setMinimumSize(160, 90);
}

void GraphCanvas::set_scene(ModelPtr model, std::shared_ptr<GraphScene> scene, OperatorId anchor) {
  const bool same_model = model == model_ && scene_;
  QPointF before;
  const OperatorId focus = current_operator();
  const bool on_operator = focus_drawn_ >= 0;
  if (same_model && anchor.valid() && scene_->card_of[anchor] >= 0)
    before = to_device(scene_->cards[static_cast<std::size_t>(scene_->card_of[anchor])].rect.topLeft());
  model_ = std::move(model);
  scene_ = std::move(scene);
  hover_ = {};
  hover_text_.clear();
  links_.clear();
  linked_card_ = -1;
  focus_card_ = focus_drawn_ = -1;
  if (same_model && focus.valid() && scene_) {
    focus_card_ = scene_->card_of[focus];
    focus_drawn_ = on_operator ? scene_->drawn_of[focus] : -1;
  }
  if (!same_model || fitted_) {
    fit();
  } else {
    update_scroll_bars();
    if (anchor.valid() && scene_->card_of[anchor] >= 0) {
      const QRectF rect = scene_->cards[static_cast<std::size_t>(scene_->card_of[anchor])].rect;
      const QPointF delta = to_device(rect.topLeft()) - before;
      horizontalScrollBar()->setValue(horizontalScrollBar()->value() + static_cast<int>(delta.x()));
      verticalScrollBar()->setValue(verticalScrollBar()->value() + static_cast<int>(delta.y()));
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

void GraphCanvas::set_empty_text(const QString& text) {
  empty_text_ = text;
  viewport()->update();
}

QPointF GraphCanvas::origin() const {
  if (!scene_) return {};
  const QSizeF content = scene_->size * zoom_;
  const double x = std::max(0.0, std::floor((viewport()->width() - content.width()) / 2));
  const double y = std::max(0.0, std::floor((viewport()->height() - content.height()) / 2));
  return {x - horizontalScrollBar()->value(), y - verticalScrollBar()->value()};
}

QPointF GraphCanvas::to_device(QPointF scene_position) const { return scene_position * zoom_ + origin(); }
QPointF GraphCanvas::to_scene(QPointF device) const { return (device - origin()) / zoom_; }

GraphPaint GraphCanvas::view() const {
  GraphPaint view;
  view.zoom = zoom_;
  view.offset = origin();
  view.viewport = viewport()->rect();
  view.theme = &theme_colors(palette());
  view.font = font();
  view.figures = figures_.get();
  view.color = color_;
  return view;
}

void GraphCanvas::repaint_all() {
  frame_stale_ = true;
  viewport()->update();
}

void GraphCanvas::update_scroll_bars() {
  const QSizeF content = scene_ ? scene_->size * zoom_ : QSizeF();
  const QSize view_size = viewport()->size();
  // Once zoomed, half a view of margin lets any place stay under the pointer.
  const QSize margin = fitted_ || !scene_ ? QSize(0, 0) : view_size / 2;
  const auto beyond = [](double size, int room) { return std::max(0, static_cast<int>(std::ceil(size)) - room); };
  horizontalScrollBar()->setRange(-margin.width(), beyond(content.width(), view_size.width()) + margin.width());
  verticalScrollBar()->setRange(-margin.height(), beyond(content.height(), view_size.height()) + margin.height());
  horizontalScrollBar()->setPageStep(view_size.width());
  verticalScrollBar()->setPageStep(view_size.height());
  horizontalScrollBar()->setSingleStep(40);
  verticalScrollBar()->setSingleStep(40);
  frame_stale_ = true;
  emit view_changed();
}

void GraphCanvas::set_zoom(double zoom, QPointF anchor) {
  zoom = std::clamp(zoom, kLeastZoom, kMostZoom);
  if (!scene_ || zoom == zoom_) return;
  const QPointF still = to_scene(anchor);
  zoom_ = zoom;
  fitted_ = false;
  update_scroll_bars();
  const QPointF delta = to_device(still) - anchor;
  horizontalScrollBar()->setValue(horizontalScrollBar()->value() + static_cast<int>(std::lround(delta.x())));
  verticalScrollBar()->setValue(verticalScrollBar()->value() + static_cast<int>(std::lround(delta.y())));
  repaint_all();
  emit zoom_changed(zoom_);
}

void GraphCanvas::fit() {
  fitted_ = true;
  if (!scene_ || scene_->size.isEmpty()) return;
  const QSizeF room = maximumViewportSize();
  zoom_ =
      std::clamp(std::min(room.width() / scene_->size.width(), room.height() / scene_->size.height()), kLeastZoom, 1.0);
  update_scroll_bars();
  horizontalScrollBar()->setValue(0);
  verticalScrollBar()->setValue(0);
  repaint_all();
  emit zoom_changed(zoom_);
}

QRectF GraphCanvas::visible_scene() const { return {to_scene(QPointF(0, 0)), QSizeF(viewport()->size()) / zoom_}; }

void GraphCanvas::center_on(QPointF scene_position) {
  const QPointF delta = to_device(scene_position) - QRectF(viewport()->rect()).center();
  horizontalScrollBar()->setValue(horizontalScrollBar()->value() + static_cast<int>(delta.x()));
  verticalScrollBar()->setValue(verticalScrollBar()->value() + static_cast<int>(delta.y()));
}

void GraphCanvas::show_card(int card, bool readable) {
  if (!scene_ || card < 0 || card >= static_cast<int>(scene_->cards.size())) return;
  const QRectF rect = scene_->cards[static_cast<std::size_t>(card)].rect;
  if (readable && zoom_ < kReadableZoom) {
    const double wide = (viewport()->width() - 16) / rect.width();
    set_zoom(std::clamp(wide, kReadableZoom, 1.0), to_device(rect.center()));
  }
  const QRectF device(to_device(rect.topLeft()), rect.size() * zoom_), area = viewport()->rect();
  if (area.contains(device)) return;
  const auto move = [](double low, double high, double least, double most) {
    if (high - low > most - least || low < least) return low - least;
    return high > most ? high - most : 0.0;
  };
  horizontalScrollBar()->setValue(
      horizontalScrollBar()->value() +
      static_cast<int>(move(device.left() - 8, device.right() + 8, area.left(), area.right())));
  verticalScrollBar()->setValue(
      verticalScrollBar()->value() +
      static_cast<int>(move(device.top() - 8, device.bottom() + 8, area.top(), area.bottom())));
}

void GraphCanvas::show_operator(OperatorId op) {
  if (!scene_ || op.index >= scene_->card_of.size() || scene_->card_of[op] < 0) return;
  const int drawn = scene_->drawn_of[op];
  if (drawn < 0) return show_card(scene_->card_of[op], false);
  const auto d = static_cast<std::size_t>(drawn);
  const QRectF box(to_device(QPointF(scene_->op_x[d], scene_->op_y[d])),
                   QSizeF(scene_->op_w[d], scene_->op_h[d]) * zoom_);
  if (!QRectF(viewport()->rect()).contains(box))
    center_on({scene_->op_x[d] + scene_->op_w[d] / 2.0, scene_->op_y[d] + scene_->op_h[d] / 2.0});
}

OperatorId GraphCanvas::current_operator() const {
  if (!scene_ || focus_card_ < 0) return {};
  if (focus_drawn_ >= 0) return scene_->op_id[static_cast<std::size_t>(focus_drawn_)];
  return scene_->members[scene_->cards[static_cast<std::size_t>(focus_card_)].member_begin];
}

void GraphCanvas::paintEvent(QPaintEvent*) {
  const ThemeColors& theme = theme_colors(palette());
  if (!scene_ || scene_->cards.empty()) {
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), theme.base);
    painter.setPen(theme.secondary);
    painter.drawText(viewport()->rect().adjusted(16, 0, -16, 0), Qt::AlignCenter | Qt::TextWordWrap, empty_text_);
    return;
  }
  const double ratio = devicePixelRatioF();
  const QSize pixels = (QSizeF(viewport()->size()) * ratio).toSize();
  if (frame_.size() != pixels) {
    frame_ = QPixmap(pixels);
    frame_.setDevicePixelRatio(ratio);
    frame_stale_ = true;
  }
  if (frame_stale_) {
    QElapsedTimer clock;
    clock.start();
    frame_.fill(theme.base);
    QPainter painter(&frame_);
    painter_.paint(painter, *scene_, view());
    painter.end();
    frame_stale_ = false;
    last_frame_ns_ = clock.nsecsElapsed();
  }
  QPainter painter(viewport());
  painter.drawPixmap(0, 0, frame_);
  static const std::set<OperatorId> none;
  painter_.paint_marks(painter, *scene_, view(), selection_ ? selection_->operators() : none,
                       selection_ ? selection_->hovered_operator() : OperatorId{},
                       hasFocus() && by_keyboard_ ? focus_card_ : -1, focus_drawn_);
  if (linked_card_ >= 0) painter_.paint_links(painter, *scene_, view(), linked_card_, links_);
  if (!panning_) paint_hover(painter, hover_text_, pointer_, viewport()->rect(), theme, font());
}

void GraphCanvas::paint_to(QPainter& painter, const QSizeF& size, const ThemeColors& theme) {
  painter.fillRect(QRectF(QPointF(0, 0), size), theme.base);
  if (!scene_ || scene_->size.isEmpty()) return;
  GraphPaint paint = view();
  paint.zoom = std::min(size.width() / scene_->size.width(), size.height() / scene_->size.height());
  paint.offset = {(size.width() - scene_->size.width() * paint.zoom) / 2,
                  (size.height() - scene_->size.height() * paint.zoom) / 2};
  paint.viewport = QRectF(QPointF(0, 0), size);
  paint.theme = &theme;
  GraphPainter own;
  own.paint(painter, *scene_, paint);
}

void GraphCanvas::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  if (fitted_) {
    fit();
  } else {
    update_scroll_bars();
  }
}

void GraphCanvas::scrollContentsBy(int, int) {
  repaint_all();
  emit view_changed();
}

void GraphCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange ||
      event->type() == QEvent::StyleChange)
    repaint_all();
  QAbstractScrollArea::changeEvent(event);
}

}  // namespace turnpoint::views
