// SPDX-License-Identifier: Apache-2.0
// Lanes: columns of colour, names and outlines.
#include "views/timeline/timeline_painter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "views/common/section_head.h"

namespace turnpoint::views {

namespace {

constexpr double kLeastShare = 0.22;  // of a column with anything in it: a short item alone is still seen
constexpr double kFaint = 0.3;        // what is not emphasised keeps this much of its colour
constexpr double kSeparatedFrom = 6;  // pixels of an item that gets an edge
constexpr double kNamedFrom = 30, kNameHeight = 13, kNamePad = 3;
constexpr double kOutlinedFrom = 3;

}  // namespace

QRectF TimelinePainter::item_rect(const TimelinePaint& view, std::uint32_t item) {
  const TimelineSummary& summary = *view.summary;
  const TimelineSummary::Lane& lane = summary.lanes()[summary.lane_of(item)];
  const QRectF bar = view.layout.bar(lane);
  const Schedule& s = *summary.schedule();
  const double left = view.window.x(s.start_s[item]), right = view.window.x(s.end_s[item]);
  QRectF rect(left, bar.top(), std::max(1.0, right - left), bar.height());
  if (lane.tracks > 1) {
    const std::uint32_t place = summary.place_of(item);
    std::uint32_t t = 0;
    while (t + 1 < lane.tracks && place >= summary.track(lane.first_track + t).end) ++t;
    rect.setTop(bar.top() + bar.height() * t / lane.tracks);
    rect.setHeight(bar.height() / lane.tracks);
  }
  return rect;
}

void TimelinePainter::prepare_glyphs(const QFont& font) {
  if (raw_.isValid() && font == glyph_font_) return;
  glyph_font_ = font;
  raw_ = QRawFont::fromFont(font);
  QString ascii;
  for (int c = 0; c < 128; ++c) ascii += QChar(c < 32 ? 32 : c);
  const auto glyphs = raw_.glyphIndexesForString(ascii);
  const auto advances = raw_.advancesForGlyphIndexes(glyphs);
  for (int c = 0; c < 128 && c < glyphs.size(); ++c) {
    glyph_[std::size_t(c)] = glyphs[c];
    advance_[std::size_t(c)] = advances[c].x();
  }
}

void TimelinePainter::paint(QPainter& painter, const TimelinePaint& view) {
  const TimelineColors colors = timeline_colors(view.color, *view.theme);
  idle_ = mixed(view.theme->base.rgb(), view.theme->head.rgb(), 0.55);
  for (std::size_t c = 0; c < kColorClasses; ++c) {
    colors_[c] = colors[c].rgb();
    faint_[c] = mixed(idle_, colors_[c], kFaint);
  }
  prepare_glyphs(secondary_font(view.font));
  paint_lanes(painter, view);
  paint_path(painter, view);
  paint_range(painter, view);
  paint_gutter(painter, view);
  paint_ruler(painter, view);
  paint_overview(painter, view);
  paint_legend(painter, view);
}

void TimelinePainter::paint_lanes(QPainter& painter, const TimelinePaint& view) {
  const TimelineLayout& layout = view.layout;
  names_.clear();
  outlines_.clear();
  const QSize pixels(int(std::ceil(layout.lanes.width() * view.ratio)),
                     int(std::ceil(layout.lanes.height() * view.ratio)));
  if (pixels.isEmpty()) return;
  if (image_.size() != pixels) image_ = QImage(pixels, QImage::Format_RGB32);
  image_.setDevicePixelRatio(1);
  image_.fill(view.theme->base.rgb());
  line_.resize(std::size_t(pixels.width()));
  for (std::uint32_t d = layout.first_device(); d < layout.last_device(); ++d) {
    if (d == view.device) {
      const int top = int((layout.row_top(d) - layout.lanes.top()) * view.ratio);
      for (int y = std::max(0, top); y < std::min(pixels.height(), top + int(layout.pitch * view.ratio)); ++y)
        std::fill_n(reinterpret_cast<QRgb*>(image_.scanLine(y)), pixels.width(),
                    mixed(view.theme->base.rgb(), view.theme->accent_background.rgb(), 0.6));
    }
    for (const TimelineSummary::Lane& lane : view.summary->lanes_of(d)) paint_lane(view, lane, image_);
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
  image_.setDevicePixelRatio(view.ratio);
  painter.drawImage(layout.lanes.topLeft(), image_);
  painter.save();
  painter.setClipRect(layout.lanes);
  paint_names(painter, view);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(view.theme->text, 1));
  for (const QRectF& rect : outlines_) painter.drawRect(rect.adjusted(0, 0, -1, -1));
  painter.restore();
}

void TimelinePainter::paint_lane(const TimelinePaint& view, const TimelineSummary::Lane& lane, QImage& image) {
  const QRectF bar = view.layout.bar(lane);
  if (bar.bottom() < view.layout.lanes.top() || bar.top() > view.layout.lanes.bottom()) return;
  if (lane.density != kNone) {
    fill_density(view, lane);
    return put_rows(view, bar, image);
  }
  for (std::uint32_t t = 0; t < lane.tracks; ++t) {
    const QRectF part(bar.left(), bar.top() + bar.height() * t / lane.tracks, bar.width(), bar.height() / lane.tracks);
    fill_track(view, lane, view.summary->track(lane.first_track + t), part);
    put_rows(view, part, image);
  }
}

/// Copies the line into every row of pixels of the bar; what is too narrow for a frame gets a line above and below it,
/// which still says which.
void TimelinePainter::put_rows(const TimelinePaint& view, const QRectF& bar, QImage& image) const {
  const double top = (bar.top() - view.layout.lanes.top()) * view.ratio;
  const int first = std::max(0, int(std::lround(top)));
  const int last = std::min(image.height(), int(std::lround(top + bar.height() * view.ratio)));
  for (int y = first; y < last; ++y) std::memcpy(image.scanLine(y), line_.data(), line_.size() * sizeof(QRgb));
  if (std::find(edge_.begin(), edge_.end(), 1) == edge_.end()) return;
  const int thick = int(std::lround(2 * view.ratio));
  const auto mark_row = [&](int y) {
    if (y < 0 || y >= image.height()) return;
    auto* row = reinterpret_cast<QRgb*>(image.scanLine(y));
    for (std::size_t x = 0; x < edge_.size(); ++x)
      if (edge_[x]) row[x] = view.theme->text.rgb();
  };
  for (int y = 0; y < thick; ++y) mark_row(int(std::lround(top)) - 1 - y), mark_row(last + y);
}

void TimelinePainter::fill_track(const TimelinePaint& view, const TimelineSummary::Lane& lane,
                                 const TimelineSummary::Track& track, const QRectF& bar) {
  const TimelineSummary& summary = *view.summary;
  const ClassSums& classes = summary.classes(view.color);
  const auto& colors = view.emphasises() ? faint_ : colors_;
  const TimeWindow& window = view.window;
  const int width = int(line_.size());
  const double step = window.per_pixel() / view.ratio;
  const bool named = lane.kind != LaneKind::send && bar.height() >= kNameHeight;
  std::fill(line_.begin(), line_.end(), idle_);
  edge_.assign(line_.size(), 0);
  TrackWalk walk(summary, track, view.color, window.from);
  ClassSums::Sums sums;
  for (int x = 0; x < width;) {
    const double from = window.from + x * step, to = window.from + (x + 1) * step;
    sums.fill(0);
    walk.column(from, to, sums);
    if (!walk.any()) {
      if (walk.first() >= track.end) break;
      // Nothing until the next item begins.
      const double next = (summary.start_s()[walk.first()] - window.from) / step;
      x = next >= width ? width : std::max(x + 1, int(next));
      continue;
    }
    if (const std::uint32_t place = walk.alone(); place != kNone) {
      const double end = (summary.end_s()[place] - window.from) / step;
      const int whole = end >= width ? width : std::max(x + 1, int(end));
      std::fill(line_.begin() + x, line_.begin() + whole, colors[classes[place]]);
      const double left = window.x(summary.start_s()[place]), right = window.x(summary.end_s()[place]);
      if ((right - left) * view.ratio >= kSeparatedFrom && whole < width)
        line_[std::size_t(whole - 1)] = mixed(colors[classes[place]], view.theme->base.rgb(), 0.5);
      if (named && right - left >= kNamedFrom)
        names_.push_back({place, QRectF(QPointF(left, bar.top()), QPointF(right, bar.bottom())), view.emphasises()});
      x = whole;
      continue;
    }
    double busy = 0, red = 0, green = 0, blue = 0;
    for (std::size_t c = 0; c < kColorClasses; ++c) {
      if (sums[c] <= 0) continue;
      busy += sums[c];
      red += sums[c] * qRed(colors[c]), green += sums[c] * qGreen(colors[c]), blue += sums[c] * qBlue(colors[c]);
    }
    if (busy > 0) {
      const QRgb color = qRgb(int(red / busy), int(green / busy), int(blue / busy));
      line_[std::size_t(x)] = mixed(idle_, color, std::max(kLeastShare, busy / (to - from)));
    }
    ++x;
  }
  if (view.critical) mark(view, track, summary.critical(), bar, false);
  if (view.picked && !view.picked->empty()) mark(view, track, *view.picked, bar, true);
}

void TimelinePainter::fill_density(const TimelinePaint& view, const TimelineSummary::Lane& lane) {
  const auto& colors = view.emphasises() ? faint_ : colors_;
  const QRgb color = colors[view.summary->classes(view.color)[view.summary->track(lane.first_track).begin]];
  edge_.assign(line_.size(), 0);
  const TimeWindow& window = view.window;
  const double step = window.per_pixel() / view.ratio;
  means_.resize(line_.size());
  view.summary->mean_running(lane, window.from, step, means_);
  for (std::size_t x = 0; x < line_.size(); ++x) {
    const double share = means_[x] > 0 ? kLeastShare + (1 - kLeastShare) * double(means_[x]) / lane.depth : 0;
    line_[x] = mixed(idle_, color, share);
  }
  const TimelineSummary::Track& track = view.summary->track(lane.first_track);
  const QRectF bar = view.layout.bar(lane);
  if (view.critical) mark(view, track, view.summary->critical(), bar, false);
  if (view.picked && !view.picked->empty()) mark(view, track, *view.picked, bar, true);
}

/// Emphasised items in full colour, at least a pixel each; those that share a pixel cost one.
void TimelinePainter::mark(const TimelinePaint& view, const TimelineSummary::Track& track,
                           const std::vector<std::uint32_t>& places, const QRectF& bar, bool outline) {
  const TimelineSummary& summary = *view.summary;
  const ClassSums& classes = summary.classes(view.color);
  const auto& start = summary.start_s();
  const auto& end = summary.end_s();
  const double step = view.window.per_pixel() / view.ratio, from = view.window.from;
  const int width = int(line_.size());
  const bool dense = summary.lanes()[summary.lane_of(summary.item_at(track.begin))].density != kNone;
  const auto last = std::lower_bound(places.begin(), places.end(), track.end);
  auto at = std::lower_bound(places.begin(), last, track.begin);
  // Ends rise along a track without overlap, so that many items within one pixel cost a few steps; in a density they
  // do not, and every item is looked at.
  const auto skip = [&](double instant) {
    if (dense || at == last || end[*at] > instant) return;
    std::ptrdiff_t stride = 1;
    while (last - at > stride && end[at[stride]] <= instant) at += stride, stride *= 2;
    at = std::partition_point(at, at + std::min(stride, last - at), [&](std::uint32_t p) { return end[p] <= instant; });
  };
  int filled = 0;
  for (skip(from); at != last;) {
    const std::uint32_t place = *at++;
    if (end[place] < from) continue;
    const double left = (start[place] - from) / step, right = (end[place] - from) / step;
    if (left >= width) break;
    const int first = std::max(0, int(std::floor(left)));
    const int behind = std::clamp(int(std::ceil(std::min(right, double(width)))), first + 1, width);
    // In a density many lie on the same columns; a frame around each would hide them all.
    if (dense && behind <= filled) continue;
    filled = std::max(filled, behind);
    std::fill(line_.begin() + first, line_.begin() + behind, colors_[classes[place]]);
    const bool wide = !dense && (right - left) / view.ratio >= kSeparatedFrom;
    if (wide && behind < width)
      line_[std::size_t(behind - 1)] = mixed(colors_[classes[place]], view.theme->base.rgb(), 0.5);
    if (outline && (dense || behind - first < int(kOutlinedFrom * view.ratio)))
      std::fill(edge_.begin() + first, edge_.begin() + behind, std::uint8_t(1));
    else if (outline)
      outlines_.push_back({QPointF(view.window.left + first / view.ratio, bar.top()),
                           QPointF(view.window.left + behind / view.ratio, bar.bottom())});
    if (wide)
      for (auto name = names_.rbegin(); name != names_.rend() && name->rect.top() == bar.top(); ++name)
        if (name->place == place) name->faint = false;
    skip(from + behind * step);
  }
}

void TimelinePainter::paint_names(QPainter& painter, const TimelinePaint& view) {
  const Schedule& s = *view.summary->schedule();
  const QFontMetricsF metrics(glyph_font_);
  painter.setFont(glyph_font_);
  const double dots = metrics.horizontalAdvance(QChar(0x2026));
  QList<quint32> glyphs;
  QList<QPointF> positions;
  QGlyphRun run;
  run.setRawFont(raw_);
  for (const Name& name : names_) {
    std::string_view text = s.graph->names[s.task[view.summary->item_at(name.place)]];
    const double left = std::max(name.rect.left(), view.layout.lanes.left()) + kNamePad;
    const double room = std::min(name.rect.right(), view.layout.lanes.right()) - kNamePad - left;
    if (room < 12) continue;
    const bool dark_fill = qGray(colors_[view.summary->classes(view.color)[name.place]]) < 120;
    painter.setPen(name.faint ? view.theme->secondary : dark_fill ? QColor(Qt::white) : view.theme->configuration_text);
    const double baseline = std::round(name.rect.center().y() + (metrics.ascent() - metrics.descent()) / 2);
    if (!std::all_of(text.begin(), text.end(), [](char c) { return c > 0; })) {
      const QString words = to_qt(text.substr(0, 200));
      painter.drawText(QPointF(left, baseline), metrics.elidedText(words, Qt::ElideRight, room));
      continue;
    }
    const auto advance = [&](std::string_view part) {
      double sum = 0;
      for (const char c : part.substr(0, 200)) sum += advance_[std::size_t(c)];
      return sum;
    };
    // The last parts of a path tell most: leading ones go first.
    while (advance(text) > room) {
      const std::size_t slash = text.find('/');
      if (slash == std::string_view::npos || slash + 1 >= text.size()) break;
      text.remove_prefix(slash + 1);
    }
    glyphs.clear(), positions.clear();
    const bool whole = advance(text) <= room;
    double x = 0;
    for (const char c : text) {
      if (!whole && x + advance_[std::size_t(c)] + dots > room) break;
      glyphs.push_back(glyph_[std::size_t(c)]);
      positions.push_back({x, 0});
      x += advance_[std::size_t(c)];
    }
    if (glyphs.size() < (whole ? 1 : 3)) continue;
    run.setGlyphIndexes(glyphs);
    run.setPositions(positions);
    painter.drawGlyphRun(QPointF(left, baseline), run);
    if (!whole) painter.drawText(QPointF(left + x, baseline), QString(QChar(0x2026)));
  }
}

}  // namespace turnpoint::views
