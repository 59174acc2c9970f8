// SPDX-License-Identifier: Apache-2.0
// Which drawn point is nearest to the pointer.
#pragma once

#include "views/frontier/chart_state.h"

class QCustomPlot;

namespace turnpoint::views {

/// The nearest visible point within `reach` pixels inside the axes; single-answer markers win ties, being larger.
std::optional<PickedPoint> find_nearest(const ChartState& state, const QCustomPlot& plot, QPointF position,
                                        double reach);

}  // namespace turnpoint::views
