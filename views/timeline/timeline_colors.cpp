// SPDX-License-Identifier: Apache-2.0
#include "views/timeline/timeline_colors.h"

#include <algorithm>

#include "views/common/format.h"
#include "views/timeline/timeline_words.h"

namespace turnpoint::views {

TimelineColors timeline_colors(TimelineColor color, const ThemeColors& theme) {
  TimelineColors colors;
  colors.fill(theme.pinned);
  switch (color) {
    case TimelineColor::kind:
      for (std::size_t c = 0; c < 3; ++c) colors[c] = theme.compute[c];
      colors[std::size_t(TaskKind::other)] = theme.pinned;
      break;
    case TimelineColor::layer:
      for (std::size_t c = 0; c < kLayerClasses; ++c) colors[c] = theme.configuration[c];
      break;
    case TimelineColor::duration:
      for (std::size_t c = 0; c < kDurationClasses; ++c) colors[c] = theme.heat[c];
      break;
  }
  colors[kTransferClass] = theme.network[1];
  colors[kCollectiveClass] = theme.memory[4];
  for (std::size_t m = 0; m < kMoveClasses; ++m) colors[kMoveClass + m] = theme.network[m];
  return colors;
}

std::vector<TimelineLegendEntry> timeline_legend(const TimelineSummary& summary, TimelineColor color,
                                                 const ThemeColors& theme) {
  const TimelineColors colors = timeline_colors(color, theme);
  std::vector<TimelineLegendEntry> entries;
  const auto add = [&](std::size_t which, const QString& text) {
    if (summary.has_class(color, which)) entries.push_back({colors[which], text});
  };
  switch (color) {
    case TimelineColor::kind: {
      const QString names[] = {timeline_text("forward"), timeline_text("backward"), timeline_text("update"),
                               timeline_text("other computing")};
      for (std::size_t c = 0; c < 4; ++c) add(c, names[c]);
      break;
    }
    case TimelineColor::layer:
      if (summary.layers_repeat()) {
        entries.push_back({{}, timeline_text("%1 layers, colours repeat").arg(summary.layer_count())});
        add(kLayerClasses - 1, timeline_text("no layer"));
      } else {
        for (std::size_t c = 0; c < summary.layer_names().size(); ++c) add(c, summary.layer_names()[c]);
        add(kLayerClasses - 1, timeline_text("no layer"));
      }
      break;
    case TimelineColor::duration:
      for (std::size_t c = 0; c < kDurationClasses; ++c) {
        const bool last = c + 1 == kDurationClasses;
        const double bound = summary.duration_bounds()[last ? c - 1 : c];
        add(c, last ? timeline_text("%1 and more").arg(time_text(bound))
                    : timeline_text("below %1").arg(time_text(bound)));
      }
      break;
  }
  add(kTransferClass, timeline_text("transfers"));
  const QString moves[] = {timeline_text("all-reduce"),     timeline_text("all-gather"),
                           timeline_text("reduce-scatter"), timeline_text("all-to-all"),
                           timeline_text("permute"),        timeline_text("optimizer state to and from the host")};
  for (std::size_t m = 0; m < kMoveClasses; ++m) add(kMoveClass + m, moves[m]);
  add(kCollectiveClass, timeline_text("between stages, other"));
  return entries;
}

QColor critical_color(const ThemeColors& theme) { return theme.error; }

QRgb mixed(QRgb under, QRgb top, double share) {
  const int weight = std::clamp(int(share * 256 + 0.5), 0, 256), rest = 256 - weight;
  return qRgb((qRed(under) * rest + qRed(top) * weight) >> 8, (qGreen(under) * rest + qGreen(top) * weight) >> 8,
              (qBlue(under) * rest + qBlue(top) * weight) >> 8);
}

}  // namespace turnpoint::views
