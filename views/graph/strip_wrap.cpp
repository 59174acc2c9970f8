// SPDX-License-Identifier: Apache-2.0
#include "views/graph/strip_wrap.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

constexpr double kLane = 5;  ///< between lines that run back side by side
constexpr double kStripGap = 14;
constexpr double kTolerance = 1.1;
constexpr double kMuchHigher = 2.5;

struct Crossing {
  std::size_t edge;
  double y;
};

/// x between neighbouring columns of nodes.
std::vector<double> column_gaps(const LevelLayout& level) {
  std::vector<std::pair<double, double>> spans;
  for (const QRectF& node : level.nodes) spans.emplace_back(node.left(), node.right());
  std::sort(spans.begin(), spans.end());
  std::vector<double> gaps;
  double right = spans.empty() ? 0 : spans.front().second;
  for (const auto& [from, to] : spans) {
    if (from > right) gaps.push_back((from + right) / 2);
    right = std::max(right, to);
  }
  return gaps;
}

int edges_across(const LevelLayout& level, double x) {
  return static_cast<int>(std::count_if(level.edges.begin(), level.edges.end(), [x](const auto& line) {
    return (line.front().x() < x) != (line.back().x() < x);
  }));
}

void add_cuts(const LevelLayout& level, const std::vector<double>& gaps, double begin, double end, double max_width,
              std::vector<double>& cuts) {
  while (end - begin > max_width * kTolerance) {
    const double wish = (end - begin) / std::ceil((end - begin) / max_width);
    const double* best = nullptr;
    double best_score = 0;
    for (const double& gap : gaps) {
      if (gap <= begin + 1 || gap >= end - 1 || (best && gap - begin > max_width)) continue;
      const double score = edges_across(level, gap) + 8 * std::abs(gap - begin - wish) / max_width;
      if (best && score >= best_score) continue;
      best = &gap, best_score = score;
    }
    if (!best) break;
    begin = *best;
    cuts.push_back(begin);
  }
}

/// Gaps before and after columns of one node that is much higher than nodes are.
std::vector<double> cuts_around_high(const LevelLayout& level, const std::vector<double>& gaps) {
  std::vector<double> heights;
  for (const QRectF& node : level.nodes) heights.push_back(node.height());
  std::nth_element(heights.begin(), heights.begin() + std::ptrdiff_t(heights.size() / 2), heights.end());
  const double usual = heights[heights.size() / 2];
  std::vector<double> cuts;
  for (const QRectF& node : level.nodes) {
    if (node.height() < usual * kMuchHigher) continue;
    const auto after = std::upper_bound(gaps.begin(), gaps.end(), node.center().x());
    const double from = after == gaps.begin() ? -1e12 : *(after - 1), to = after == gaps.end() ? 1e12 : *after;
    const auto beside = std::count_if(level.nodes.begin(), level.nodes.end(), [&](const QRectF& other) {
      return other.center().x() > from && other.center().x() < to;
    });
    if (beside > 1) continue;
    if (after != gaps.begin()) cuts.push_back(from);
    if (after != gaps.end()) cuts.push_back(to);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

std::vector<double> choose_cuts(const LevelLayout& level, double max_width, bool alone) {
  const auto gaps = column_gaps(level);
  std::vector<double> forced;
  if (alone && level.nodes.size() > 1) forced = cuts_around_high(level, gaps);
  forced.push_back(level.size.width());
  std::vector<double> cuts;
  double begin = 0;
  for (const double end : forced) {
    add_cuts(level, gaps, begin, end, max_width, cuts);
    if (end < level.size.width()) cuts.push_back(end);
    begin = end;
  }
  return cuts;
}

}  // namespace

LevelLayout wrap_into_strips(const LevelLayout& level, double max_width, bool alone) {
  if (level.size.width() <= max_width * kTolerance) return level;
  const auto cuts = choose_cuts(level, max_width, alone);
  if (cuts.empty()) return level;
  const std::size_t strips = cuts.size() + 1;
  const auto strip_of = [&](double x) {
    return static_cast<std::size_t>(std::upper_bound(cuts.begin(), cuts.end(), x) - cuts.begin());
  };

  // Where edges cross each cut, and how high each strip is.
  std::vector<std::vector<Crossing>> crossings(cuts.size());
  std::vector<double> top(strips, 1e12), bottom(strips, -1e12);
  const auto extend = [&](std::size_t strip, double y0, double y1) {
    top[strip] = std::min(top[strip], y0), bottom[strip] = std::max(bottom[strip], y1);
  };
  for (const QRectF& node : level.nodes) extend(strip_of(node.center().x()), node.top(), node.bottom());
  for (std::size_t e = 0; e < level.edges.size(); ++e) {
    const auto& line = level.edges[e];
    for (const QPointF& p : line) extend(strip_of(p.x()), p.y(), p.y());
    for (std::size_t c = 0; c < cuts.size(); ++c)
      for (std::size_t i = 0; i + 1 < line.size(); ++i) {
        if (!(line[i].x() < cuts[c] && line[i + 1].x() >= cuts[c])) continue;
        const double y =
            line[i].y() + (line[i + 1].y() - line[i].y()) * (cuts[c] - line[i].x()) / (line[i + 1].x() - line[i].x());
        crossings[c].push_back({e, y});
        extend(c, y, y), extend(c + 1, y, y);
        break;
      }
  }
  std::size_t lanes = 1;
  for (auto& cut : crossings) {
    std::stable_sort(cut.begin(), cut.end(), [](const Crossing& a, const Crossing& b) { return a.y < b.y; });
    lanes = std::max(lanes, cut.size());
  }
  const double margin = kLane * static_cast<double>(lanes + 1);

  std::vector<double> dx(strips), dy(strips), gap_top(cuts.size());
  double y = 0, widest = 0;
  for (std::size_t s = 0; s < strips; ++s) {
    const double begin = s == 0 ? 0 : cuts[s - 1], end = s < cuts.size() ? cuts[s] : level.size.width();
    dx[s] = margin - begin;
    dy[s] = y - top[s];
    y += bottom[s] - top[s];
    widest = std::max(widest, end - begin);
    if (s == cuts.size()) break;
    gap_top[s] = y + kStripGap / 2;
    y += kStripGap + kLane * static_cast<double>(crossings[s].size());
  }

  LevelLayout wrapped;
  wrapped.own = level.own;
  wrapped.size = {widest + 2 * margin, y};
  for (const QRectF& node : level.nodes) {
    const auto s = strip_of(node.center().x());
    wrapped.nodes.push_back(node.translated(dx[s], dy[s]));
  }
  for (std::size_t e = 0; e < level.edges.size(); ++e) {
    std::vector<QPointF> line;
    std::size_t strip = strip_of(level.edges[e].front().x());
    for (const QPointF& p : level.edges[e]) {
      for (const auto target = strip_of(p.x()); strip < target; ++strip) {
        const auto& cut = crossings[strip];
        const auto at = std::find_if(cut.begin(), cut.end(), [e](const Crossing& c) { return c.edge == e; });
        if (at == cut.end()) continue;
        // The topmost line keeps outside of the others at the right, inside at the left: none crosses another.
        const double rank = static_cast<double>(at - cut.begin()), others = static_cast<double>(cut.size()) - rank - 1;
        const double right = cuts[strip] + dx[strip] + kLane * (others + 1), left = margin - kLane * (rank + 1);
        const double lane = gap_top[strip] + kLane * others;
        const double out_y = at->y + dy[strip], in_y = at->y + dy[strip + 1];
        for (const QPointF& corner :
             {QPointF(right, out_y), QPointF(right, lane), QPointF(left, lane), QPointF(left, in_y)})
          line.push_back(corner);
      }
      line.emplace_back(p.x() + dx[strip], p.y() + dy[strip]);
    }
    wrapped.edges.push_back(std::move(line));
  }
  return wrapped;
}

}  // namespace turnpoint::views
