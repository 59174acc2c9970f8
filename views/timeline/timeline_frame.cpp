// SPDX-License-Identifier: Apache-2.0
// What surrounds the lanes: gutter, ruler, path, range, overview, legend, cursor.
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "views/common/plan_figures.h"
#include "views/common/section_head.h"
#include "views/timeline/timeline_painter.h"
#include "views/timeline/timeline_words.h"

namespace turnpoint::views {

namespace {

constexpr double kPad = 8, kTickPixels = 84;

QFont bold(QFont font) {
  font.setBold(true);
  return font;
}

QString device_figures(const TimelineSummary& summary, std::uint32_t device) {
  const Schedule& s = *summary.schedule();
  QString text;
  for (const TimelineSummary::Lane& lane : summary.lanes_of(device))
    if (lane.kind == LaneKind::compute && s.makespan_s > 0)
      text = timeline_text("busy %1").arg(share_text(lane.busy_s / s.makespan_s));
  const QString peak = memory_text(s.devices[device].peak_bytes);
  return text.isEmpty() ? peak : text + QStringLiteral(" \u00b7 ") + peak;
}

/// The number is centred on its tick, the unit hangs behind it.
QRectF label_rect(const TimelinePaint& view, const TimeTicks& ticks, int index, const QFontMetricsF& metrics) {
  const QRectF& ruler = view.layout.ruler;
  return tick_label_rect(ticks, index, view.window, metrics, ruler.left() - 12, ruler.right() + 8, ruler.top() + 2);
}

}  // namespace

double TimelinePainter::gutter_width(const TimelineSummary* summary, const QFont& font) {
  const QFontMetricsF name(font), small(secondary_font(font));
  double width = 90;
  if (summary)
    for (std::uint32_t d = 0; d < std::min<std::size_t>(summary->schedule()->devices.size(), 512); ++d)
      width =
          std::max({width, name.horizontalAdvance(to_qt(summary->schedule()->devices[d].name).left(40)) + 2 * kPad + 30,
                    small.horizontalAdvance(device_figures(*summary, d)) + 2 * kPad});
  return std::ceil(std::min(width, 210.0));
}

void TimelinePainter::paint_gutter(QPainter& painter, const TimelinePaint& view) const {
  const TimelineLayout& layout = view.layout;
  const ThemeColors& theme = *view.theme;
  const Schedule& s = *view.summary->schedule();
  painter.save();
  painter.setClipRect(layout.gutter);
  painter.fillRect(layout.gutter, theme.base);
  QFont name = view.font, small = secondary_font(view.font);
  const double line = QFontMetricsF(small).height();
  const bool two = layout.two_lines(line);
  if (!two && layout.pitch < QFontMetricsF(name).height()) {
    name = small;
    if (layout.pitch < line) name.setPixelSize(std::max(8, int(layout.pitch) - 3)), small = name;
  }
  const QFontMetricsF metrics(name), small_metrics(small);
  for (std::uint32_t d = layout.first_device(); d < layout.last_device(); ++d) {
    const Schedule::Device& device = s.devices[d];
    const bool picked = d == view.device, over = device.peak_bytes > device.memory_limit;
    QRectF row(0, layout.row_top(d), layout.gutter.width(), layout.pitch);
    if (picked) painter.fillRect(row, theme.accent_background);
    row.adjust(kPad, 0, -kPad, 0);
    painter.setFont(picked ? bold(name) : name);
    painter.setPen(theme.text);
    const QString words = to_qt(device.name);
    if (two) {
      const double top = row.top() + (row.height() - metrics.height() - small_metrics.height()) / 2;
      painter.drawText(QRectF(row.left(), top, row.width(), metrics.height()), Qt::AlignLeft | Qt::AlignVCenter,
                       metrics.elidedText(words, Qt::ElideRight, row.width()));
      painter.setFont(small);
      painter.setPen(over ? theme.error : theme.secondary);
      painter.drawText(QRectF(row.left(), top + metrics.height(), row.width(), small_metrics.height()),
                       Qt::AlignLeft | Qt::AlignVCenter, device_figures(*view.summary, d));
      continue;
    }
    QString busy;
    for (const TimelineSummary::Lane& lane : view.summary->lanes_of(d))
      if (lane.kind == LaneKind::compute && s.makespan_s > 0) busy = share_text(lane.busy_s / s.makespan_s);
    const double right = small_metrics.horizontalAdvance(busy);
    painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(words, Qt::ElideRight, row.width() - right - 6));
    painter.setFont(small);
    painter.setPen(over ? theme.error : theme.secondary);
    painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter, busy);
  }
  painter.restore();
}

void TimelinePainter::paint_ruler(QPainter& painter, const TimelinePaint& view) const {
  const TimelineLayout& layout = view.layout;
  const ThemeColors& theme = *view.theme;
  const QFont small = secondary_font(view.font);
  const QFontMetricsF metrics(small);
  painter.fillRect(layout.corner.united(layout.ruler).adjusted(0, 0, 40, 0), theme.base);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setFont(small);
  if (!(view.summary->schedule()->makespan_s > 0)) return;
  const TimeTicks ticks = time_ticks(view.window, kTickPixels);
  const double base = layout.ruler.bottom() - 1;
  if (!ticks.base_text.isEmpty()) {
    painter.setPen(theme.secondary);
    painter.drawText(layout.corner.adjusted(kPad, 0, -4, 0), Qt::AlignRight | Qt::AlignVCenter,
                     metrics.elidedText(ticks.base_text, Qt::ElideLeft, layout.corner.width() - kPad - 4));
  }
  painter.setPen(theme.border);
  painter.drawLine(QPointF(layout.ruler.left(), base), QPointF(layout.ruler.right(), base));
  for (int i = -1; i <= ticks.count; ++i) {
    const double at = ticks.at(i);
    for (int part = 0; part < ticks.parts; ++part) {
      const double x = std::round(view.window.x(at + ticks.step * part / ticks.parts));
      if (x < layout.ruler.left() || x > layout.ruler.right()) continue;
      painter.setPen(theme.axis);
      painter.drawLine(QPointF(x, base - (part == 0 ? 5 : 2)), QPointF(x, base - 1));
    }
    if (i < 0 || i >= ticks.count) continue;
    painter.setPen(theme.secondary);
    painter.drawText(label_rect(view, ticks, i, metrics), Qt::AlignLeft | Qt::AlignVCenter, ticks.label(i));
  }
}

/// Lines from lane to lane where the path changes, and below its steps; left out where there are more than anyone could
/// follow.
void TimelinePainter::paint_path(QPainter& painter, const TimelinePaint& view) const {
  if (!view.critical) return;
  const TimelineSummary& summary = *view.summary;
  const auto& path = summary.path();
  const auto& start = summary.schedule()->start_s;
  const auto& end = summary.schedule()->end_s;
  const auto ended = [&](std::uint32_t i) { return end[i] < view.window.from; };
  const auto first = std::partition_point(path.begin(), path.end(), ended);
  const auto last = std::partition_point(first, path.end(), [&](auto i) { return start[i] <= view.window.to; });
  const auto from = std::uint32_t(first - path.begin()), to = std::uint32_t(last - path.begin());
  painter.save();
  painter.setClipRect(view.layout.lanes);
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(QPen(critical_color(*view.theme), 1.2));
  const double most = view.layout.lanes.width() / 3;
  for (std::uint32_t i = from; i < to && double(to - from) < most; ++i) {
    const QRectF here = item_rect(view, path[i]);
    painter.drawLine(QPointF(std::max(here.left(), view.layout.lanes.left()), here.bottom() - 0.5),
                     QPointF(std::min(here.right(), view.layout.lanes.right()), here.bottom() - 0.5));
  }
  const auto& turns = summary.critical_turns();
  const auto turn = std::lower_bound(turns.begin(), turns.end(), from > 0 ? from - 1 : 0);
  const auto behind = std::lower_bound(turn, turns.end(), to);
  for (auto at = turn; at != behind && double(behind - turn) < most; ++at) {
    const QRectF here = item_rect(view, path[*at]), next = item_rect(view, path[*at + 1]);
    painter.drawLine(QPointF(here.right(), here.bottom() - 0.5),
                     QPointF(next.left(), next.top() < here.top() ? next.bottom() : next.top()));
  }
  painter.restore();
}

void TimelinePainter::paint_range(QPainter& painter, const TimelinePaint& view) const {
  if (!view.range) return;
  const TimelineLayout& layout = view.layout;
  const double left = std::max(view.window.x(view.range->first), layout.lanes.left());
  const double right = std::min(view.window.x(view.range->second), layout.lanes.right());
  if (right < layout.lanes.left() || left > layout.lanes.right()) return;
  QColor fill = view.theme->accent;
  fill.setAlphaF(0.16f);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.fillRect(QRectF(left, layout.lanes.top(), std::max(1.0, right - left), layout.lanes.height()), fill);
  painter.setPen(view.theme->accent);
  for (const double t : {view.range->first, view.range->second}) {
    const double x = std::round(view.window.x(t));
    if (x >= layout.lanes.left() && x <= layout.lanes.right())
      painter.drawLine(QPointF(x, layout.lanes.top()), QPointF(x, layout.lanes.bottom()));
  }
}

void TimelinePainter::paint_overview(QPainter& painter, const TimelinePaint& view) const {
  const TimelineLayout& layout = view.layout;
  const ThemeColors& theme = *view.theme;
  const double makespan = view.summary->schedule()->makespan_s;
  const QRectF area = layout.overview;
  painter.fillRect(QRectF(0, layout.gutter.bottom(), layout.lanes.right() + 20,
                          layout.overview.bottom() + 4 - layout.gutter.bottom()),
                   theme.base);
  painter.setRenderHint(QPainter::Antialiasing, false);
  const QFont small = secondary_font(view.font);
  painter.setFont(small);
  painter.setPen(theme.secondary);
  painter.drawText(layout.overview_label.adjusted(kPad, 0, -kPad, 0), Qt::AlignLeft | Qt::AlignVCenter,
                   timeline_text("all %1").arg(time_text(makespan)));
  painter.fillRect(area, theme.alternate);
  if (!(makespan > 0)) return;
  const auto& compute = view.summary->overview_compute();
  const auto& moving = view.summary->overview_moving();
  const int width = int(area.width());
  const double room = area.height() - 2, moving_room = 6;
  bool moves = std::any_of(moving.begin(), moving.end(), [](float share) { return share > 0; });
  const double compute_room = moves ? room - moving_room - 1 : room;
  const QColor blue = theme.compute[1], orange = theme.network[1];
  for (int x = 0; x < width; ++x) {
    const auto bins = double(TimelineSummary::kOverviewBins);
    const auto first = std::size_t(x * bins / width);
    const auto last = std::clamp(std::size_t((x + 1) * bins / width), first + 1, TimelineSummary::kOverviewBins);
    float a = 0, b = 0;
    for (std::size_t k = first; k < last; ++k) a += compute[k], b += moving[k];
    a /= float(last - first), b /= float(last - first);
    const double high = compute_room * double(a);
    if (a > 0)
      painter.fillRect(QRectF(area.left() + x, area.top() + 1 + compute_room - high, 1, std::max(1.0, high)), blue);
    if (b > 0) {
      QColor shade = orange;
      shade.setAlphaF(std::clamp(0.25f + 0.75f * b, 0.f, 1.f));
      painter.fillRect(QRectF(area.left() + x, area.bottom() - moving_room, 1, moving_room - 1), shade);
    }
  }
  const TimeWindow all{0, makespan, area.left(), area.width()};
  if (view.range) {
    QColor fill = theme.accent;
    fill.setAlphaF(0.3f);
    painter.fillRect(QRectF(QPointF(all.x(view.range->first), area.top()),
                            QPointF(std::max(all.x(view.range->second), all.x(view.range->first) + 1), area.bottom())),
                     fill);
  }
  const double left = std::clamp(all.x(view.window.from), area.left(), area.right());
  const double right = std::clamp(all.x(view.window.to), area.left(), area.right());
  QColor veil = theme.base;
  veil.setAlphaF(0.62f);
  painter.fillRect(QRectF(area.left(), area.top(), left - area.left(), area.height()), veil);
  painter.fillRect(QRectF(right, area.top(), area.right() - right, area.height()), veil);
  painter.setPen(theme.accent);
  painter.setBrush(Qt::NoBrush);
  const double wide = std::max(3.0, right - left),
               at = std::clamp((left + right - wide) / 2, area.left(), area.right() - wide);
  painter.drawRect(QRectF(std::floor(at), area.top(), std::floor(wide) - 1, area.height() - 1));
}

void TimelinePainter::paint_legend(QPainter& painter, const TimelinePaint& view) const {
  const QRectF area = view.layout.legend;
  if (area.isEmpty()) return;
  const ThemeColors& theme = *view.theme;
  painter.fillRect(area, theme.base);
  const QFont small = secondary_font(view.font);
  const QFontMetricsF metrics(small);
  painter.setFont(small);
  auto entries = timeline_legend(*view.summary, view.color, theme);
  entries.push_back({QColor::fromRgb(idle_), timeline_text("idle")});
  double x = view.layout.lanes.left();
  for (const TimelineLegendEntry& entry : entries) {
    const QString text = metrics.elidedText(entry.text, Qt::ElideMiddle, 180);
    const double wide = metrics.horizontalAdvance(text) + (entry.color.isValid() ? 15 : 0);
    if (x + wide > area.right() - 4) break;
    if (entry.color.isValid()) {
      const QRectF swatch(x, std::round(area.center().y() - 5), 10, 10);
      painter.fillRect(swatch, entry.color);
      painter.setPen(theme.border);
      if (entry.text == entries.back().text) painter.drawRect(swatch.adjusted(0, 0, -1, -1));
      x += 15;
    }
    painter.setPen(theme.secondary);
    painter.drawText(QRectF(x, area.top(), wide, area.height()), Qt::AlignLeft | Qt::AlignVCenter, text);
    x += wide - (entry.color.isValid() ? 15 : 0) + 16;
  }
}

void TimelinePainter::paint_item(QPainter& painter, const TimelinePaint& view, std::uint32_t item,
                                 const QColor& color) const {
  const Schedule& s = *view.summary->schedule();
  painter.save();
  painter.setClipRect(view.layout.lanes.adjusted(-2, 0, 2, 0));
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setBrush(Qt::NoBrush);
  QRectF rect = item_rect(view, item);
  // Beyond the window lines would be clipped slowly, and far beyond not at all.
  rect.setLeft(std::max(rect.left(), view.layout.lanes.left() - 8));
  rect.setRight(std::min(rect.right(), view.layout.lanes.right() + 8));
  if (rect.right() >= rect.left()) {
    painter.setPen(QPen(color, 1.6));
    painter.drawRect(rect.adjusted(-1.2, -1.2, 1.2, 1.2));
    if (s.is_transfer(item) && s.peer[item] < view.layout.devices) {
      for (const TimelineSummary::Lane& lane : view.summary->lanes_of(s.peer[item])) {
        if (lane.kind != LaneKind::compute) continue;
        const QRectF bar = view.layout.bar(lane);
        const double x = view.window.x(s.end_s[item]);
        const bool below = bar.top() > rect.bottom();
        const QPointF tip(x, below ? bar.top() : bar.bottom());
        painter.setPen(QPen(color, 1.2));
        painter.drawLine(QPointF(x, below ? rect.bottom() : rect.top()), tip);
        const double away = below ? -6 : 6;
        painter.drawLine(tip, tip + QPointF(-3.5, away));
        painter.drawLine(tip, tip + QPointF(3.5, away));
      }
    }
  }
  painter.restore();
}

void TimelinePainter::paint_cursor(QPainter& painter, const TimelinePaint& view, double instant) const {
  const TimelineLayout& layout = view.layout;
  const double x = std::round(view.window.x(instant));
  if (x < layout.lanes.left() || x > layout.lanes.right()) return;
  const ThemeColors& theme = *view.theme;
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setPen(QPen(theme.axis, 1, Qt::DashLine));
  painter.drawLine(QPointF(x, layout.ruler.bottom()), QPointF(x, layout.lanes.bottom()));
  const QFont small = secondary_font(view.font);
  const QFontMetricsF metrics(small);
  const QString text = instant_text(instant, view.window.per_pixel());
  QRectF tag(0, 1, metrics.horizontalAdvance(text) + 10, layout.ruler.height() - 8);
  tag.moveLeft(std::clamp(x - tag.width() / 2, layout.ruler.left() - 10, layout.ruler.right() + 10 - tag.width()));
  // Labels below the tag go, rather than show half of themselves.
  const TimeTicks ticks = time_ticks(view.window, kTickPixels);
  for (int i = 0; i < ticks.count; ++i)
    if (const QRectF label = label_rect(view, ticks, i, metrics); label.intersects(tag.adjusted(-3, 0, 3, 0)))
      painter.fillRect(label, theme.base);
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.axis);
  painter.drawRoundedRect(tag, 2, 2);
  painter.setFont(small);
  painter.setPen(theme.dark ? theme.base : QColor(Qt::white));
  painter.drawText(tag, Qt::AlignCenter, text);
}

}  // namespace turnpoint::views
