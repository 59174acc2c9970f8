// SPDX-License-Identifier: Apache-2.0
#include "views/graph/graph_painter.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "views/graph/edge_line.h"

namespace turnpoint::views {

namespace {

constexpr double kTextHeight = 24;  // a folded card lower than this shows its bar only
constexpr double kLeastFontScale = 0.74;
constexpr double kThreeLines = 48;  // an operator as high as this shows figures too

}  // namespace

QFont graph_name_font(const QFont& base, double zoom) {
  QFont font = graph_small_font(base, zoom);
  font.setBold(true);
  return font;
}

QFont graph_small_font(const QFont& base, double zoom) {
  QFont font = base;
  const double scale = 0.92 * std::clamp(zoom, kLeastFontScale, 1.0);
  if (base.pointSizeF() > 0) {
    font.setPointSizeF(base.pointSizeF() * scale);
  } else {
    font.setPixelSize(std::max(1, static_cast<int>(std::lround(base.pixelSize() * scale))));
  }
  return font;
}

QColor GraphPainter::fill_color(const GraphPaint& view, int index) {
  if (!view.figures) return view.theme->head;
  if (view.color == GraphColor::configuration) return view.theme->configuration[static_cast<std::size_t>(index)];
  if (view.color == GraphColor::ratio) return view.theme->ratio[static_cast<std::size_t>(index)];
  return view.theme->heat[static_cast<std::size_t>(std::min(index, 4))];
}

QColor GraphPainter::text_color(const GraphPaint& view, int index) {
  if (!view.figures) return view.theme->text;
  if (view.color == GraphColor::configuration) return view.theme->configuration_text;
  const QColor fill = fill_color(view, index);
  return qGray(fill.rgb()) < 128 ? QColor(Qt::white) : QColor(Qt::black);
}

void GraphPainter::paint(QPainter& painter, const GraphScene& scene, const GraphPaint& view) {
  if (texts_of_ != &scene || texts_zoom_ != view.zoom || texts_font_ != view.font) {
    texts_font_ = view.font;
    name_font_ = graph_name_font(view.font, view.zoom), small_font_ = graph_small_font(view.font, view.zoom);
    operator_texts_.assign(scene.op_id.size(), QString());
    card_texts_.assign(scene.cards.size(), QString());
    if (texts_of_ != &scene) {
      std::vector<QString> names;
      for (const GraphCard& card : scene.cards) names.push_back(card.name);
      card_parts_ = telling_parts(names);
    }
    texts_of_ = &scene, texts_zoom_ = view.zoom;
  }
  const GraphTier tier = view.tier(scene);
  painter.setRenderHint(QPainter::Antialiasing, tier != GraphTier::far);
  paint_edges(painter, scene, view, scene.connector_begin, static_cast<std::uint32_t>(scene.edges()), false);
  for (std::size_t c = 0; c < scene.cards.size(); ++c) {
    const GraphCard& card = scene.cards[c];
    const QRectF rect = view.map(card.rect);
    if (!rect.intersects(view.viewport)) continue;
    if (card.open) {
      paint_open(painter, scene, card, c, view, tier);
    } else {
      painter.setRenderHint(QPainter::Antialiasing, false);
      paint_folded(painter, card, c, view, rect.height() >= kTextHeight);
    }
  }
}

void GraphPainter::paint_shares(QPainter& painter, const GraphCard& card, const QRectF& bar,
                                const GraphPaint& view) const {
  double x = bar.left(), sum = 0;
  for (int k = 0; k < 8; ++k) {
    const float share = card.share[static_cast<std::size_t>(k)];
    if (share <= 0) continue;
    sum += share;
    const double right = sum > 0.9999 ? bar.right() : bar.left() + bar.width() * sum;
    painter.fillRect(QRectF(x, bar.top(), right - x, bar.height()), fill_color(view, k));
    x = right;
  }
  if (sum == 0) painter.fillRect(bar, view.theme->head);
}

void GraphPainter::paint_folded(QPainter& painter, const GraphCard& card, std::size_t index, const GraphPaint& view,
                                bool texts) {
  const QRect rect = view.map(card.rect).toRect();
  if (!texts) {
    paint_shares(painter, card, rect, view);
    if (rect.width() < 8) return;
  } else {
    const QFontMetrics name_metrics(name_font_);
    const int text_height = std::min(rect.height() * 6 / 10, name_metrics.height() + 6);
    painter.fillRect(rect, view.theme->base);
    paint_shares(painter, card, QRectF(rect.adjusted(0, text_height, 0, 0)), view);
    const QRect line = QRect(rect.left(), rect.top(), rect.width(), text_height).adjusted(5, 0, -5, 0);
    QString& shown = card_texts_[index];
    if (shown.isNull()) shown = elided_around(QFontMetricsF(name_metrics), card.name, card_parts_[index], line.width());
    // The name matters more than the time.
    const int room = line.width() - name_metrics.horizontalAdvance(shown) - 5;
    const bool with_time = card.group != kNoGroup && !card.time_text.isEmpty() &&
                           QFontMetrics(small_font_).horizontalAdvance(card.time_text) <= room;
    painter.setFont(name_font_);
    painter.setPen(view.theme->text);
    painter.drawText(line, (with_time ? Qt::AlignLeft : Qt::AlignHCenter) | Qt::AlignVCenter | Qt::TextSingleLine,
                     shown);
    if (with_time) {
      painter.setFont(small_font_);
      painter.setPen(view.theme->secondary);
      painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter | Qt::TextSingleLine, card.time_text);
    }
    painter.setPen(view.theme->axis);
    painter.drawLine(rect.left(), rect.top() + text_height, rect.right(), rect.top() + text_height);
  }
  painter.setPen(view.theme->axis);
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect.adjusted(0, 0, -1, -1));
}

void GraphPainter::paint_open(QPainter& painter, const GraphScene& scene, const GraphCard& card, std::size_t index,
                              const GraphPaint& view, GraphTier tier) {
  const QRectF rect = view.map(card.rect);
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (tier == GraphTier::far) {
    paint_shares(painter, card, rect.toRect(), view);
    if (rect.width() >= 8) {
      painter.setPen(view.theme->axis);
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(rect.toRect().adjusted(0, 0, -1, -1));
    }
    return;
  }
  if (!scene.lone_panel) {
    painter.setPen(view.theme->axis);
    painter.setBrush(view.theme->alternate);
    painter.drawRect(rect.toRect().adjusted(0, 0, -1, -1));
  }
  painter.setRenderHint(QPainter::Antialiasing, true);
  const double header = kPanelHeader * view.zoom;
  if (header >= 9) {
    const double size = std::min(4.0, header / 4);
    const QPointF tip = rect.topLeft() + QPointF(8 + size, header / 2 + size * 0.8);
    if (!scene.lone_panel) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(view.theme->text);
      const QPointF triangle[] = {tip, tip + QPointF(-size, -size * 1.5), tip + QPointF(size, -size * 1.5)};
      painter.drawConvexPolygon(triangle, 3);
    }
    QFont name = name_font_, small = small_font_;
    const double fits = (header - 2) / QFontMetricsF(name).height();
    if (fits < 1) {
      const auto shrink = [fits](QFont& font) {
        if (font.pointSizeF() > 0) font.setPointSizeF(std::max(1.0, font.pointSizeF() * fits));
        if (font.pointSizeF() <= 0) font.setPixelSize(std::max(1, static_cast<int>(font.pixelSize() * fits)));
      };
      shrink(name), shrink(small);
    }
    const QRectF line(rect.left() + 18, rect.top(), rect.width() - 24, header);
    QString& shown = card_texts_[index];
    const QFontMetricsF name_metrics(name);
    if (shown.isNull()) shown = elided_around(QFontMetricsF(name_metrics), card.name, card_parts_[index], line.width());
    painter.setFont(name);
    painter.setPen(view.theme->text);
    painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine, shown);
    const double used = name_metrics.horizontalAdvance(shown) + 12;
    if (QFontMetricsF(small).horizontalAdvance(card.detail_text) < line.width() - used) {
      painter.setFont(small);
      painter.setPen(view.theme->secondary);
      painter.drawText(line.adjusted(used, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                       card.detail_text);
    }
  }
  paint_edges(painter, scene, view, card.edge_begin, card.edge_end, tier == GraphTier::middle);
  paint_operators(painter, scene, card, view);
}

void GraphPainter::paint_edges(QPainter& painter, const GraphScene& scene, const GraphPaint& view, std::uint32_t begin,
                               std::uint32_t end, bool wide_only) {
  const GraphTier tier = view.tier(scene);
  const double scale = tier == GraphTier::near ? 1.0 : tier == GraphTier::middle ? 0.6 : 0.4;
  painter.setBrush(Qt::NoBrush);
  // Thin ones first, so that what costs lies on top.
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 0 && wide_only) continue;
    for (std::uint32_t e = begin; e < end; ++e) {
      const bool wide = scene.edge_heat[e] > 0;
      if (wide != (pass == 1)) continue;
      line_.clear();
      double left = 1e12, right = -1e12, top = 1e12, bottom = -1e12;
      for (std::uint32_t p = scene.point_begin[e]; p < scene.point_begin[e + 1]; ++p) {
        line_.push_back(view.map(scene.points[p]));
        left = std::min(left, line_.back().x()), right = std::max(right, line_.back().x());
        top = std::min(top, line_.back().y()), bottom = std::max(bottom, line_.back().y());
      }
      if (right < view.viewport.left() || left > view.viewport.right() || bottom < view.viewport.top() ||
          top > view.viewport.bottom())
        continue;
      const double width = std::max(wide ? 1.5 : 1.0, scene.edge_width[e] * scale);
      const QColor color = wide ? view.theme->heat[scene.edge_heat[e]] : view.theme->axis;
      paint_edge_line(painter, line_, color, width, tier == GraphTier::near, view.zoom);
    }
  }
}

void GraphPainter::paint_operators(QPainter& painter, const GraphScene& scene, const GraphCard& card,
                                   const GraphPaint& view) {
  const GraphTier tier = view.tier(scene);
  for (auto& boxes : boxes_) boxes.clear();
  for (std::uint32_t d = card.drawn_begin; d < card.drawn_end; ++d) {
    const QRectF box = view.map(QRectF(scene.op_x[d], scene.op_y[d], scene.op_w[d], scene.op_h[d]));
    if (box.intersects(view.viewport)) boxes_[scene.op_color[d]].push_back(box);
  }
  for (int k = 0; k < 8; ++k) {
    const auto& boxes = boxes_[k];
    if (boxes.empty()) continue;
    const QColor fill = fill_color(view, k);
    painter.setPen(tier == GraphTier::near || view.zoom > 0.35
                       ? QPen(view.figures ? fill.darker(145) : view.theme->axis, 1)
                       : QPen(Qt::NoPen));
    painter.setBrush(fill);
    if (tier == GraphTier::near) {
      for (const QRectF& box : boxes) painter.drawRoundedRect(box, 3, 3);
    } else {
      painter.setRenderHint(QPainter::Antialiasing, false);
      painter.drawRects(boxes.data(), static_cast<int>(boxes.size()));
      painter.setRenderHint(QPainter::Antialiasing, true);
    }
  }
  if (tier != GraphTier::near) return;
  for (std::uint32_t d = card.drawn_begin; d < card.drawn_end; ++d) {
    const QRectF box = view.map(QRectF(scene.op_x[d], scene.op_y[d], scene.op_w[d], scene.op_h[d]));
    if (box.intersects(view.viewport)) paint_operator_text(painter, scene, d, box, view);
  }
}

void GraphPainter::paint_operator_text(QPainter& painter, const GraphScene& scene, std::uint32_t drawn,
                                       const QRectF& box, const GraphPaint& view) {
  QString& shown = operator_texts_[drawn];
  const QFont& small = small_font_;
  const QRectF inside = box.adjusted(3, 0, -3, 0);
  if (shown.isNull()) shown = QFontMetricsF(small).elidedText(scene.op_name[drawn], Qt::ElideMiddle, inside.width());
  const int index = scene.op_color[drawn];
  painter.setPen(text_color(view, index));
  if (!view.figures || box.height() < kThreeLines) {
    painter.setFont(small);
    const QFontMetricsF metrics(small);
    if (scene.op_kind[drawn].isEmpty() || box.height() < 2 * metrics.height()) {
      painter.drawText(inside, Qt::AlignCenter | Qt::TextSingleLine, shown);
      return;
    }
    const QRectF upper(inside.left(), box.center().y() - metrics.height(), inside.width(), metrics.height());
    painter.drawText(upper, Qt::AlignCenter | Qt::TextSingleLine, shown);
    painter.drawText(upper.translated(0, metrics.height()), Qt::AlignCenter | Qt::TextSingleLine,
                     metrics.elidedText(scene.op_kind[drawn], Qt::ElideRight, inside.width()));
    return;
  }
  const QFontMetricsF metrics(small);
  const bool four = !scene.op_kind[drawn].isEmpty() && box.height() >= 4 * metrics.height();
  const double line = metrics.height(), top = box.center().y() - line * (four ? 2 : 1.5);
  const OperatorFigures& figures = view.figures->of(scene.op_id[drawn]);
  painter.setFont(name_font_);
  painter.drawText(QRectF(inside.left(), top, inside.width(), line),
                   Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                   QFontMetricsF(painter.font()).elidedText(scene.op_name[drawn], Qt::ElideMiddle, inside.width()));
  painter.setFont(small);
  QStringList rows;
  if (four) rows << scene.op_kind[drawn];
  rows << (view.color == GraphColor::ratio ? view.figures->ratio()->words(scene.op_id[drawn])
                                           : view.figures->configuration_of(scene.op_id[drawn]).text)
       << seconds_text(figures.time_s()) + QStringLiteral(" \u00b7 ") + bytes_text(figures.memory_bytes);
  for (int r = 0; r < rows.size(); ++r)
    painter.drawText(QRectF(inside.left(), top + line * (r + 1), inside.width(), line),
                     Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                     metrics.elidedText(rows[r], Qt::ElideRight, inside.width()));
}

void GraphPainter::paint_links(QPainter& painter, const GraphScene& scene, const GraphPaint& view, int card,
                               const std::vector<CardLink>& links) const {
  painter.setRenderHint(QPainter::Antialiasing, true);
  const QRectF here = view.map(scene.cards[static_cast<std::size_t>(card)].rect);
  for (const CardLink& link : links) {
    const QRectF there = view.map(scene.cards[static_cast<std::size_t>(link.card)].rect);
    const QRectF &from = link.incoming ? there : here, &to = link.incoming ? here : there;
    // Bowed away from the row of cards, so that it can be told from the lines between neighbours.
    const double bow = 14 + 0.08 * std::hypot(to.center().x() - from.center().x(), to.center().y() - from.center().y());
    const QPointF start(from.center().x(), from.top()), end(to.center().x(), to.top());
    QPainterPath path(start);
    path.cubicTo(start - QPointF(0, bow), end - QPointF(0, bow), end);
    painter.setPen(QPen(view.theme->accent, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    painter.setPen(Qt::NoPen);
    painter.setBrush(view.theme->accent);
    const QPointF triangle[] = {end, end + QPointF(-3.5, -6), end + QPointF(3.5, -6)};
    painter.drawConvexPolygon(triangle, 3);
  }
}

void GraphPainter::paint_marks(QPainter& painter, const GraphScene& scene, const GraphPaint& view,
                               const std::set<OperatorId>& selected, OperatorId hovered, int focus_card,
                               int focus_drawn) const {
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setBrush(Qt::NoBrush);
  const auto box_of = [&](int drawn) {
    const auto d = static_cast<std::size_t>(drawn);
    return view.map(QRectF(scene.op_x[d], scene.op_y[d], scene.op_w[d], scene.op_h[d]));
  };
  const auto outline = [&](OperatorId op, const QPen& pen) {
    if (!op.valid() || op.index >= scene.drawn_of.size()) return;
    const int drawn = scene.drawn_of[op], card = scene.card_of[op];
    const bool far = view.tier(scene) == GraphTier::far;
    if (drawn < 0 && card < 0) return;
    const QRectF box = drawn >= 0 && !far ? box_of(drawn) : view.map(scene.cards[static_cast<std::size_t>(card)].rect);
    if (!box.intersects(view.viewport)) return;
    painter.setPen(pen);
    painter.drawRoundedRect(box, 3, 3);
  };
  std::vector<bool> marked(scene.cards.size(), false);
  for (const OperatorId op : selected) {
    if (op.index >= scene.card_of.size()) continue;
    const int card = scene.card_of[op];
    // A folded card with a hundred picked operators is outlined once.
    if (card >= 0 && scene.drawn_of[op] < 0) {
      if (marked[static_cast<std::size_t>(card)]) continue;
      marked[static_cast<std::size_t>(card)] = true;
    }
    outline(op, QPen(view.theme->accent, 2.5));
  }
  outline(hovered, QPen(view.theme->text, 1.5));
  if (focus_card < 0 || focus_card >= static_cast<int>(scene.cards.size())) return;
  const QRectF place =
      focus_drawn >= 0 ? box_of(focus_drawn) : view.map(scene.cards[static_cast<std::size_t>(focus_card)].rect);
  painter.setPen(QPen(view.theme->accent, 1, Qt::DashLine));
  painter.drawRoundedRect(place.adjusted(-3, -3, 3, 3), 4, 4);
}

}  // namespace turnpoint::views
