// SPDX-License-Identifier: Apache-2.0
// What the timeline's classes look like and what they are called.
#pragma once

#include <QColor>
#include <QString>
#include <array>
#include <vector>

#include "views/common/theme_colors.h"
#include "views/timeline/timeline_summary.h"

namespace turnpoint::views {

using TimelineColors = std::array<QColor, kColorClasses>;
TimelineColors timeline_colors(TimelineColor color, const ThemeColors& theme);

struct TimelineLegendEntry {
  QColor color;  ///< invalid: words only
  QString text;
};
/// What is there to see, in the order of classes.
std::vector<TimelineLegendEntry> timeline_legend(const TimelineSummary& summary, TimelineColor color,
                                                 const ThemeColors& theme);

QColor critical_color(const ThemeColors& theme);
/// `share` of `top` over `under`.
QRgb mixed(QRgb under, QRgb top, double share);

}  // namespace turnpoint::views
