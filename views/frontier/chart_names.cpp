// SPDX-License-Identifier: Apache-2.0
// The names at the data: of lines along them, of markers beside them, of what is out of view at the edge.
#include <algorithm>

#include "views/common/section_head.h"
#include "views/frontier/chart_items.h"
#include "views/frontier/label_placer.h"
#include "views/frontier/marker_groups.h"

namespace turnpoint::views {

using Side = LabelPlacer::Side;

namespace {

constexpr double kOtherMarker_px = 16;  // nearer words would seem to name it

}  // namespace

/// Words beside a point, blocked for all that follow. With `led`, further away and with a line to the point where there
/// is no room beside it. False: nowhere.
bool LabelItem::write_beside(QPainter& painter, LabelPlacer& placer, const Words& words, QPointF anchor, double gap,
                             const std::vector<Side>& order, bool led) {
  const QFontMetricsF metrics(words.font);
  const QSizeF size(metrics.horizontalAdvance(words.text) + 2, metrics.height());
  auto at = placer.place(anchor, size, gap, order);
  if (!at && led && (at = placer.place_away(anchor, size))) {
    QLineF leader(anchor, nearest_in(*at, anchor));
    leader.setPoints(leader.pointAt(std::min(1.0, 6 / leader.length())), leader.p2());
    painter.setPen(QPen(state_->colors->axis, 1));
    painter.drawLine(leader);
    placer.block_leader(leader);
  }
  if (!at) return false;
  state_->words.push_back(*at);
  painter.setFont(words.font);
  painter.setPen(words.color);
  painter.drawText(*at, Qt::AlignCenter | Qt::TextDontClip, words.text);
  return true;
}

/// Out of view: named at the edge it lies beyond, with its figures, so that nothing is lost without a word.
void LabelItem::name_at_edge(QPainter& painter, LabelPlacer& placer, const QString& title, const ResultPoint& shown,
                             const std::optional<PickedPoint>& point) {
  const QRectF frame = area();
  const QPointF at = pixel(shown);
  const QString arrow = at.x() > frame.right()  ? QStringLiteral("→")
                        : at.y() < frame.top()  ? QStringLiteral("↑")
                        : at.x() < frame.left() ? QStringLiteral("←")
                                                : QStringLiteral("↓");
  const QString text =
      QStringLiteral("%1 %2 · %3 %4")
          .arg(title, state_->units.memory_text(double(shown.memory_bytes), mParentPlot->xAxis->range().size()),
               state_->units.time_text(shown.time_s), arrow);
  const QPointF edge(std::clamp(at.x(), frame.left() + 8, frame.right() - 8),
                     std::clamp(at.y(), frame.top() + 12, frame.bottom() - 12));
  const Words words{text, secondary_font(state_->font), state_->colors->secondary};
  // Where the words do not fit between the edge and the memory line, they stand further inside.
  const double into = edge.y() < frame.center().y() ? 1 : -1, across = edge.x() < frame.center().x() ? 1 : -1;
  for (double aside = 0; aside < 0.8 * frame.width(); aside += 24)
    for (double down = 0; down < frame.height() / 2; down += 14)
      if (write_beside(painter, placer, words, edge + QPointF(across * aside, into * down), 0,
                       {Side::left, Side::right})) {
        if (point) state_->edge_names.push_back({state_->words.back(), *point});
        return;
      }
}

QString LabelItem::title_of(const ChartSeries& series) const {
  // Among plain sums a simulated figure has to say that it is one.
  const bool odd = series.result->clock == Clock::simulated && state_->data.clock == Clock::additive;
  return odd               ? QObject::tr("%1 (simulated)").arg(series.title)
         : series.beyond() ? QObject::tr("%1 (beyond the switches)").arg(series.title)
                           : series.title;
}

/// One name for markers that cover each other: of each series at its fastest plan.
void LabelItem::draw_group_names(QPainter& painter, LabelPlacer& placer, const std::vector<MarkerGroup>& groups) {
  const ThemeColors& colors = *state_->colors;
  const QRectF frame = area();
  const ChartSeries* subject = state_->data.subject();
  for (const MarkerGroup& group : groups) {
    QStringList names;
    bool strong = false, stale = true;
    for (const PickedPoint& member : group.members) {
      const ChartSeries& series = *state_->data.find(member.method);
      const std::size_t count = series.result->points.size();
      const bool line = series.frontier && (count > 1 || &series == subject);
      if (line || member.index + 1 != count) continue;  // a line is named along it
      strong = strong || &series == subject || series.method == state_->emphasised;
      stale = stale && series.stale;
      names << title_of(series);
    }
    if (names.isEmpty()) continue;
    if (!frame.contains(group.at)) {
      const PickedPoint& first = group.members.front();
      const ResultPoint& shown = state_->data.find(first.method)->result->points[first.index];
      name_at_edge(painter, placer, group_title(names), shown, first);
      continue;
    }
    // Where there is no room for the names, their number: the fan that opens under the pointer names each.
    for (const QString& text : {group_title(names), QObject::tr("%1 methods").arg(names.size())}) {
      const Words words{text, strong ? bold(state_->font) : state_->font, stale ? colors.disabled : colors.text};
      const bool written =
          write_beside(painter, placer, words, group.at, 9, {Side::right, Side::left, Side::above, Side::below}, true);
      if (written || names.size() == 1) break;
    }
  }
}

void LabelItem::draw_names(QPainter& painter, LabelPlacer& placer, const std::vector<MarkerGroup>& groups) {
  const ThemeColors& colors = *state_->colors;
  const QRectF frame = area();
  const ChartSeries* subject = state_->data.subject();
  // A line's own marks do not keep its name away, but those of markers.
  const auto of_lines = [&](const MarkerGroup& group) {
    return std::all_of(group.members.begin(), group.members.end(), [&](const PickedPoint& member) {
      const ChartSeries& series = *state_->data.find(member.method);
      return series.frontier && series.result->points.size() > 1;
    });
  };
  for (const MarkerGroup& group : groups)
    if (!of_lines(group)) placer.keep_off(group.at, kOtherMarker_px);
  for (const auto& series : state_->data.series) {
    if (!state_->visible(series) || !series.frontier) continue;
    const bool strong = &series == subject || series.method == state_->emphasised;
    const QFont font = strong ? bold(state_->font) : state_->font;
    const std::vector<ResultPoint> points = series.line_points();
    const auto in_view = [&](const ResultPoint& p) { return drawable(p) && frame.contains(pixel(p)); };
    const bool seen = &series == subject || std::any_of(points.begin(), points.end(), in_view);
    if (series.result->points.size() == 1 && &series != subject && !series.line) continue;  // a marker
    if (seen) {
      // Along the line from its steep end until a free place turns up.
      const std::size_t stride = std::max<std::size_t>(1, points.size() / 24);
      for (std::size_t i = 0; i < points.size(); i += stride)
        if (in_view(points[i]) &&
            write_beside(painter, placer,
                         {series.title, font, series.stale ? colors.disabled : colors.method(series.method)},
                         pixel(points[i]), 7, {Side::right, Side::above, Side::below}))
          break;
    } else if (!points.empty() && drawable(points.back())) {
      // Of a line, its fastest plan.
      name_at_edge(painter, placer, title_of(series), points.back(), PickedPoint{series.method, points.size() - 1});
    }
  }
  for (const MarkerGroup& group : groups)
    if (of_lines(group)) placer.keep_off(group.at, kOtherMarker_px);
  draw_group_names(painter, placer, groups);
  if (!state_->show_pinned) return;
  const QFont small = secondary_font(state_->font);
  for (const auto& pinned : state_->data.pinned) {
    const QString text = QObject::tr("pinned: %1").arg(pinned.label);
    const std::size_t stride = std::max<std::size_t>(1, pinned.points.size() / 24);
    bool in_view = false, written = false;
    for (std::size_t i = 0; i < pinned.points.size() && !written; i += stride) {
      const ResultPoint& p = pinned.points[i];
      if (!drawable(p) || !frame.contains(pixel(p))) continue;
      in_view = true;
      written = write_beside(painter, placer, {text, small, colors.secondary}, pixel(p), 7,
                             {Side::left, Side::below, Side::right, Side::above});
    }
    if (!in_view && !pinned.points.empty() && drawable(pinned.points.back()) &&
        !frame.contains(pixel(pinned.points.back())))
      name_at_edge(painter, placer, text, pinned.points.back(), std::nullopt);
  }
}

void LabelItem::draw_part_names(QPainter& painter, LabelPlacer& placer) {
  const ChartSeries* subject = state_->data.subject();
  if (!subject) return;
  const QRectF frame = area();
  const QFont small = secondary_font(state_->font);
  const QFontMetricsF metrics(small);
  painter.setFont(small);
  painter.setPen(state_->colors->method(subject->method));
  const auto& points = subject->result->points;
  for (const bool compute : {true, false}) {
    const QString text = compute ? QObject::tr("compute") : QObject::tr("network");
    // From right to left: the parts are flat there.
    const std::size_t stride = std::max<std::size_t>(1, points.size() / 48);
    const std::size_t first = subject->result->first_considered();
    for (std::size_t k = points.size(); k > first; k = k > stride ? k - stride : 0) {
      const auto& p = points[k - 1];
      if (!drawable(p)) continue;
      const QPointF at(pixel_x(static_cast<double>(p.memory_bytes)), pixel_y(compute ? p.compute_s : p.network_s));
      if (at.x() > frame.left() + 0.8 * frame.width() || !frame.contains(at)) continue;
      const auto place =
          placer.place(at, {metrics.horizontalAdvance(text) + 2, metrics.height() - 2}, 4, {Side::above, Side::below});
      if (!place) continue;
      state_->words.push_back(*place);
      painter.drawText(*place, Qt::AlignCenter | Qt::TextDontClip, text);
      break;
    }
  }
}

}  // namespace turnpoint::views
