// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_painter.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "views/graph/edge_line.h"
#include "views/graph/graph_painter.h"

namespace turnpoint::views {

namespace {

// Device pixels.
constexpr double kLeastInside = 5;      // an open box is painted with its inside from boxes of this width on
constexpr double kLeastLines = 22;      // lines between boxes of this width
constexpr double kRoundLines = 60;      // with rounded bends and arrows ...
constexpr std::size_t kFewBoxes = 160;  // ... while no more than these are in sight
constexpr double kTextWidth = 34, kTaskTextHeight = 11, kTextZoom = 0.42;
constexpr std::size_t kFewLines = 220, kManyLines = 700;  // of a level in sight: rounded at most; hairlines from
constexpr double kMostRounded = 28000, kUsedUp = 8000;    // pixels of rounded lines: smoothing takes time by length
constexpr double kSightMargin = 16;                       // for widths and arrows of lines that end beyond the border
constexpr int kOutlineFrom = 12;                          // narrower boxes have no border
constexpr int kHoverHeight = 24;                          // a closed group lower than this shows its strip only

}  // namespace

bool TaskPaint::shows_inside(const TaskScene& scene, const TaskBox& box) const {
  if (!box.open) return false;
  if (box.parent < 0) return true;
  return scene.typical_width * zoom >= kLeastInside && box.rect.width() * zoom >= 24 && box.rect.height() * zoom >= 16;
}

std::array<QColor, kDeviceColors> TaskPainter::colors(const TaskPaint& paint) {
  std::array<QColor, kDeviceColors> colors;
  if (paint.neutral) {
    colors.fill(paint.theme->head);
  } else if (paint.color == TaskColor::time || paint.color == TaskColor::bytes) {
    colors.fill(paint.theme->heat[4]);
    std::copy(paint.theme->heat.begin(), paint.theme->heat.end(), colors.begin());
  } else {
    colors = device_palette(*paint.theme);
  }
  if (paint.color != TaskColor::device || paint.device == kNone) return colors;
  const QColor ground = paint.theme->base;
  for (std::size_t c = 0; c < kDeviceColors; ++c) {
    if (c == device_slot(paint.device)) continue;
    const auto mix = [](int a, int b) { return (a * 18 + b * 82) / 100; };
    colors[c] = QColor(mix(colors[c].red(), ground.red()), mix(colors[c].green(), ground.green()),
                       mix(colors[c].blue(), ground.blue()));
  }
  return colors;
}

int TaskPainter::painted_box(const TaskScene& scene, const TaskPaint& paint, int box) {
  int painted = box;
  for (int b = box; b > 0; b = scene.boxes[std::size_t(b)].parent) {
    const TaskBox& one = scene.boxes[std::size_t(b)];
    if (one.open && !paint.shows_inside(scene, one)) painted = b;
  }
  return painted;
}

void TaskPainter::prepare(const TaskScene& scene, const TaskPaint& paint) {
  if (texts_of_ != &scene || texts_zoom_ != paint.zoom || texts_font_ != paint.font) {
    texts_font_ = paint.font;
    name_font_ = graph_name_font(paint.font, paint.zoom), small_font_ = graph_small_font(paint.font, paint.zoom);
    name_metrics_ = QFontMetrics(name_font_), small_metrics_ = QFontMetrics(small_font_);
    if (texts_of_ != &scene) parts_.assign(scene.boxes.size(), std::nullopt);
    names_.assign(scene.boxes.size(), QString());
    fits_.assign(scene.boxes.size(), Fit());
    texts_of_ = &scene, texts_zoom_ = paint.zoom;
  }
  few_ = boxes_in_sight(scene, paint, kFewBoxes) < kFewBoxes;
  colors_ = colors(paint);
  for (std::size_t c = 0; c < kDeviceColors; ++c) dark_text_[c] = qGray(colors_[c].rgb()) >= 118;
}

std::size_t TaskPainter::boxes_in_sight(const TaskScene& scene, const TaskPaint& paint, std::size_t enough) {
  std::size_t count = 0;
  std::vector<std::uint32_t> open{0};
  while (!open.empty() && count < enough) {
    const TaskBox& around = scene.boxes[open.back()];
    open.pop_back();
    for (std::uint32_t c = around.child_begin; c < around.child_end; ++c) {
      if (!paint.map(scene.boxes[c].rect).intersects(paint.viewport)) continue;
      ++count;
      if (paint.shows_inside(scene, scene.boxes[c])) open.push_back(c);
    }
  }
  return count;
}

NamePart TaskPainter::telling_part(const TaskScene& scene, std::uint32_t index) {
  std::optional<NamePart>& part = parts_[index];
  if (!part && scene.boxes[index].parent >= 0) {
    const TaskBox& around = scene.boxes[std::size_t(scene.boxes[index].parent)];
    std::vector<QString> names;
    for (std::uint32_t c = around.child_begin; c < around.child_end; ++c) names.push_back(scene.boxes[c].name);
    const auto parts = telling_parts(names);
    std::copy(parts.begin(), parts.end(), parts_.begin() + around.child_begin);
  }
  return part.value_or(NamePart());
}

const QString& TaskPainter::name(const TaskScene& scene, std::uint32_t index, const QFontMetrics& metrics, int width) {
  QString& shown = names_[index];
  if (shown.isNull()) {
    const QString& whole = scene.boxes[index].name;
    shown = metrics.horizontalAdvance(whole) <= width
                ? whole
                : elided_around(QFontMetricsF(metrics), whole, telling_part(scene, index), width);
    if (shown.isNull()) shown = QStringLiteral("");
  }
  return shown;
}

void TaskPainter::paint(QPainter& painter, const TaskScene& scene, const TaskPaint& paint) {
  if (scene.boxes.empty()) return;
  prepare(scene, paint);
  open_.assign(1, 0);
  while (!open_.empty()) {
    const std::uint32_t at = open_.back();
    open_.pop_back();
    const TaskBox& around = scene.boxes[at];
    if (at != 0) paint_frame(painter, scene, paint, at);
    paint_lines(painter, scene, paint, around);
    painter.setRenderHint(QPainter::Antialiasing, false);
    for (std::uint32_t c = around.child_begin; c < around.child_end; ++c) {
      const TaskBox& box = scene.boxes[c];
      if (!paint.map(box.rect).intersects(paint.viewport)) continue;
      if (paint.shows_inside(scene, box)) {
        open_.push_back(c);
      } else {
        paint_closed(painter, scene, paint, c);
      }
    }
  }
}

void TaskPainter::paint_shares(QPainter& painter, const TaskScene& scene, const TaskBox& box, const QRect& bar) const {
  if (box.shares == kNone || bar.width() < 8) {
    painter.fillRect(bar, colors_[box.color]);
    return;
  }
  double sum = 0;
  int x = bar.left();
  for (std::size_t k = 0; k < kDeviceColors; ++k) {
    const float share = scene.shares[box.shares + k];
    if (share <= 0) continue;
    sum += double(share);
    const int right = sum > 0.9999 ? bar.right() + 1 : bar.left() + int(std::lround(bar.width() * sum));
    if (right > x) painter.fillRect(QRect(x, bar.top(), right - x, bar.height()), colors_[k]);
    x = std::max(x, right);
  }
}

void TaskPainter::outline(QPainter& painter, const TaskPaint& paint, const TaskBox& box, const QRect& rect) const {
  // Most groups hold some of the path: those say how much by a bar instead.
  const bool critical = box.critical && paint.critical_path && (!box.is_group || box.fold);
  if (rect.width() < (critical ? 4 : kOutlineFrom)) return;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(critical ? paint.theme->error : paint.theme->axis);
  painter.drawRect(rect.adjusted(0, 0, -1, -1));
  if (critical && rect.height() >= 14) painter.drawRect(rect.adjusted(1, 1, -2, -2));
}

void TaskPainter::critical_bar(QPainter& painter, const TaskPaint& paint, const TaskBox& box, const QRect& rect) const {
  if (!box.critical || !paint.critical_path || box.fold) return;
  const int width =
      std::clamp(int(std::lround(double(box.critical_share) * rect.width())), 3, std::max(3, rect.width()));
  painter.fillRect(QRect(rect.left(), rect.bottom() - 3, width, 3), paint.theme->error);
}

void TaskPainter::paint_closed(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, std::uint32_t index) {
  const TaskBox& box = scene.boxes[index];
  QRect rect = paint.map(box.rect).toRect();
  rect.setWidth(std::max(1, rect.width())), rect.setHeight(std::max(1, rect.height()));
  const bool room = rect.width() >= kTextWidth && rect.height() >= kTaskTextHeight && paint.zoom >= kTextZoom;
  if (box.is_group && room && rect.height() >= kHoverHeight) {
    paint_card(painter, scene, paint, index, rect);
    critical_bar(painter, paint, box, rect);
    outline(painter, paint, box, rect);
    return;
  }
  paint_shares(painter, scene, box, rect);
  if (box.is_group && rect.height() >= kHoverHeight / 2) critical_bar(painter, paint, box, rect);
  outline(painter, paint, box, rect);
  if (!room) return;
  const QFontMetrics& metrics = small_metrics_;
  if (metrics.ascent() > rect.height()) return;
  painter.setFont(small_font_);
  const QRect inside = rect.adjusted(4, 0, -4, 0);
  const bool one_color = box.shares == kNone || scene.shares[box.shares + box.color] > 0.995f;
  if (!one_color) {
    // A strip of many colours has no one colour that a text could be read on.
    const int width = std::min(inside.width(), metrics.horizontalAdvance(name(scene, index, metrics, inside.width())));
    painter.fillRect(QRect(0, 0, width + 6, std::min(rect.height() - 2, metrics.height()))
                         .translated(inside.center() -
                                     QPoint((width + 6) / 2 - 1, std::min(rect.height() - 2, metrics.height()) / 2)),
                     paint.theme->base);
    painter.setPen(paint.theme->text);
  } else {
    painter.setPen(paint.neutral           ? paint.theme->text
                   : dark_text_[box.color] ? QColor(0x10, 0x13, 0x16)
                                           : QColor(Qt::white));
  }
  painter.drawText(inside, Qt::AlignCenter | Qt::TextSingleLine, name(scene, index, metrics, inside.width()));
}

void TaskPainter::paint_card(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, std::uint32_t index,
                             const QRect& rect) {
  const TaskBox& box = scene.boxes[index];
  const int line = name_metrics_.height();
  const bool two = !box.fold && rect.height() >= 2 * line + 7;
  const int text_height = std::min(rect.height() * 3 / 4, two ? 2 * line + 4 : line + 4);
  painter.fillRect(rect, paint.theme->base);
  paint_shares(painter, scene, box, rect.adjusted(0, text_height, 0, 0));
  const QRect first =
      QRect(rect.left(), rect.top() + (two ? 2 : 1), rect.width(), two ? line : text_height - 1).adjusted(6, 0, -6, 0);
  // The name matters more than the figures.
  const QString& shown = name(scene, index, name_metrics_, first.width());
  // Measured once per zoom and width: measuring takes as long as drawing.
  Fit& fit = fits_[index];
  if (fit.width != first.width() || fit.value != box.value) {
    fit.width = first.width(), fit.value = box.value;
    const int free = first.width() - name_metrics_.horizontalAdvance(shown) - 6;
    fit.with_value = small_metrics_.horizontalAdvance(box.value) <= free;
    fit.second = small_metrics_.elidedText(
        fit.with_value ? box.detail : box.value + QStringLiteral(" \u00b7 ") + box.detail, Qt::ElideRight, fit.width);
  }
  const bool with_value = fit.with_value;
  painter.setFont(name_font_);
  painter.setPen(paint.theme->text);
  painter.drawText(
      first, (with_value || two ? Qt::AlignLeft : Qt::AlignHCenter) | Qt::AlignVCenter | Qt::TextSingleLine, shown);
  painter.setFont(small_font_);
  painter.setPen(paint.theme->secondary);
  if (with_value) painter.drawText(first, Qt::AlignRight | Qt::AlignVCenter | Qt::TextSingleLine, box.value);
  if (two) {
    const QRect second = first.translated(0, line);
    painter.drawText(second, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine, fit.second);
  }
  painter.setPen(paint.theme->axis);
  painter.drawLine(rect.left(), rect.top() + text_height, rect.right(), rect.top() + text_height);
}

void TaskPainter::paint_frame(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, std::uint32_t index) {
  const TaskBox& box = scene.boxes[index];
  const QRect rect = paint.map(box.rect).toRect();
  painter.setRenderHint(QPainter::Antialiasing, false);
  int depth = 0;
  for (int p = box.parent; p > 0; p = scene.boxes[std::size_t(p)].parent) ++depth;
  painter.fillRect(rect, depth % 2 == 0 ? paint.theme->alternate : paint.theme->base);
  outline(painter, paint, box, rect);
  const double header = kPanelHeader * paint.zoom;
  const QFontMetrics &name_metrics = name_metrics_, &small_metrics = small_metrics_;
  if (header < name_metrics.ascent()) return;
  painter.setRenderHint(QPainter::Antialiasing, true);
  const double size = std::min(4.0, header / 4);
  const QPointF tip = QPointF(rect.topLeft()) + QPointF(8 + size, header / 2 + size * 0.8);
  painter.setPen(Qt::NoPen);
  painter.setBrush(paint.theme->text);
  const QPointF triangle[] = {tip, tip + QPointF(-size, -size * 1.5), tip + QPointF(size, -size * 1.5)};
  painter.drawConvexPolygon(triangle, 3);
  const QRect line(rect.left() + 18, rect.top(), rect.width() - 26, int(header));
  const QString& shown = name(scene, index, name_metrics, line.width());
  painter.setFont(name_font_);
  painter.setPen(paint.theme->text);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine, shown);
  const int used = name_metrics.horizontalAdvance(shown) + 12;
  const QString detail = box.detail + QStringLiteral(" \u00b7 ") + box.value;
  if (small_metrics.horizontalAdvance(detail) > line.width() - used) return;
  painter.setFont(small_font_);
  painter.setPen(paint.theme->secondary);
  painter.drawText(line.adjusted(used, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine, detail);
}

void TaskPainter::paint_lines(QPainter& painter, const TaskScene& scene, const TaskPaint& paint,
                              const TaskBox& around) {
  // Boxes of the level itself, not of all the scene, say whether its lines can be told apart.
  if (around.child_begin == around.child_end) return;
  double width = 0;
  for (std::uint32_t c = around.child_begin; c < around.child_end; ++c) width += scene.boxes[c].rect.width();
  width *= paint.zoom / double(around.child_end - around.child_begin);
  if (width < kLeastLines && around.parent >= 0) return;
  // Which lines are in sight decides how much care there is time for.
  std::vector<std::uint32_t> seen;
  const double longest = std::hypot(paint.viewport.width(), paint.viewport.height());
  double length = 0;
  for (std::uint32_t l = around.edge_begin; l < around.edge_end; ++l) {
    map_line(scene, paint, l);
    if (line_.size() < 2) continue;
    seen.push_back(l);
    for (std::size_t p = 0; p + 1 < line_.size(); ++p) {
      const QPointF step = line_[p + 1] - line_[p];
      length += std::min(longest, std::hypot(step.x(), step.y()));
    }
  }
  const bool round = few_ && width >= kRoundLines && seen.size() <= kFewLines && length <= kMostRounded;
  // One level's worth in a frame: what is drawn later is inside of it.
  if (round && length > kUsedUp) few_ = false;
  const double scale = seen.size() > kManyLines ? 0.0 : width >= kRoundLines ? 1.0 : 0.6;
  painter.setRenderHint(QPainter::Antialiasing, round);
  painter.setBrush(Qt::NoBrush);
  // Light ones first, so that what costs lies on top, and the critical path over all.
  for (int pass = 0; pass < 3; ++pass)
    for (const std::uint32_t l : seen) {
      const bool critical = scene.line_critical[l] && paint.critical_path;
      if ((critical ? 2 : scene.line_heat[l] > 0 ? 1 : 0) != pass) continue;
      map_line(scene, paint, l);
      const double plain = std::max(1.0, double(scene.line_width[l]) * scale);
      const QColor color = critical             ? paint.theme->error
                           : scene.line_heat[l] ? paint.theme->heat[scene.line_heat[l]]
                                                : paint.theme->axis;
      // What crosses keeps its width and colour below the thin line of the path.
      if (critical && scene.line_heat[l] > 0)
        paint_edge_line(painter, line_, paint.theme->heat[scene.line_heat[l]], plain, round, paint.zoom);
      paint_edge_line(painter, line_, color, critical ? 2.0 : plain, round, paint.zoom);
    }
}

/// Into line_, without what lies before the first and behind the last stretch in sight; empty: nothing is.
void TaskPainter::map_line(const TaskScene& scene, const TaskPaint& paint, std::size_t line) {
  const std::uint32_t begin = scene.point_begin[line], end = scene.point_begin[line + 1];
  const QRectF sight = paint.viewport.adjusted(-kSightMargin, -kSightMargin, kSightMargin, kSightMargin);
  std::uint32_t first = end, last = begin;
  for (std::uint32_t p = begin; p + 1 < end; ++p) {
    const QPointF a = paint.map(scene.points[p]), b = paint.map(scene.points[p + 1]);
    if (std::max(a.x(), b.x()) < sight.left() || std::min(a.x(), b.x()) > sight.right() ||
        std::max(a.y(), b.y()) < sight.top() || std::min(a.y(), b.y()) > sight.bottom())
      continue;
    first = std::min(first, p), last = p + 1;
  }
  line_.clear();
  for (std::uint32_t p = first; p < end && p <= last; ++p) line_.push_back(paint.map(scene.points[p]));
}

void TaskPainter::paint_line_mark(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, int line) {
  if (line < 0) return;
  const auto l = std::size_t(line);
  map_line(scene, paint, l);
  if (line_.size() < 2) return;
  painter.setRenderHint(QPainter::Antialiasing, true);
  paint_edge_line(painter, line_, paint.theme->accent, std::max(2.0, double(scene.line_width[l])), true, paint.zoom);
}

void TaskPainter::paint_left_out(QPainter& painter, const TaskScene& scene, const TaskPaint& paint,
                                 const TaskHierarchy& hierarchy, int box) const {
  constexpr std::size_t kMostBows = 60;
  if (box <= 0 || painted_box(scene, paint, box) != box) return;
  const TaskBox& around = scene.boxes[std::size_t(scene.boxes[std::size_t(box)].parent)];
  painter.setRenderHint(QPainter::Antialiasing, true);
  QColor color = paint.theme->accent;
  color.setAlpha(170);
  painter.setPen(QPen(color, 1.3));
  painter.setBrush(Qt::NoBrush);
  for (const std::uint32_t e : lines_left_out_of(scene, hierarchy, box, kMostBows)) {
    const auto place = [&](std::uint32_t ordinal) { return paint.map(scene.boxes[around.child_begin + ordinal].rect); };
    const QRectF from = place(hierarchy.edges[e].from), to = place(hierarchy.edges[e].to);
    if (!from.united(to).intersects(paint.viewport)) continue;
    const QPointF a(from.right(), from.center().y()), b(to.left(), to.center().y());
    const double reach = std::clamp(std::abs(b.x() - a.x()) / 3, 14.0, 90.0);
    QPainterPath bow(a);
    bow.cubicTo(a + QPointF(reach, 0), b - QPointF(reach, 0), b);
    painter.drawPath(bow);
  }
}

void TaskPainter::paint_marks(QPainter& painter, const TaskScene& scene, const TaskPaint& paint,
                              const std::vector<int>& picked, int hovered, int focus) const {
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setBrush(Qt::NoBrush);
  const auto mark = [&](int index, const QPen& pen, double around) {
    if (index <= 0 || index >= int(scene.boxes.size())) return;
    QRectF box = paint.map(scene.boxes[std::size_t(painted_box(scene, paint, index))].rect);
    // However far away, a mark can be seen.
    if (box.width() < 6) box.adjust(-3, 0, 3, 0);
    if (box.height() < 6) box.adjust(0, -3, 0, 3);
    if (!box.intersects(paint.viewport)) return;
    painter.setPen(pen);
    painter.drawRoundedRect(box.adjusted(-around, -around, around, around), 3, 3);
  };
  for (const int box : picked) mark(box, QPen(paint.theme->accent, 2.5), 0.5);
  mark(hovered, QPen(paint.theme->text, 1.5), 0);
  mark(focus, QPen(paint.theme->accent, 1, Qt::DashLine), 3);
}

}  // namespace turnpoint::views
