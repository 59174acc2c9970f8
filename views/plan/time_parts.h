// SPDX-License-Identifier: Apache-2.0
// The parts of a step's time, as bars and their legends show them.
#pragma once

#include <QColor>
#include <QString>
#include <vector>

#include "core/cost/breakdown.h"
#include "views/plan/breakdown_bar.h"

namespace turnpoint::views {

struct ThemeColors;

struct TimePart {
  QColor color;
  QString name;  ///< "Forward", "All-reduce"
  double seconds = 0;
  bool network = false;
};
/// Computing first. Of computing all but a recompute of nothing, of the network what there is. `stages`: of a pipeline
/// with several, whose permutes are what stages send each other.
std::vector<TimePart> time_parts(const CostBreakdown& cost, bool stages, const ThemeColors& colors);
std::vector<BarPart> bar_of(const std::vector<TimePart>& parts);

}  // namespace turnpoint::views
