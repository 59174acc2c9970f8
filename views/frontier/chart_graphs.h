// SPDX-License-Identifier: Apache-2.0
// Turns ChartData into QCustomPlot graphs: step lines, dotted parts, markers, pinned curves.
#pragma once

#include <qcustomplot.h>

#include "views/frontier/chart_state.h"

namespace turnpoint::views {

/// Rebuilds all graphs of the plot; layers "pinned", "parts" and "main" must exist. Points that are not finite are left
/// out, because one of them would silently break axis scaling.
void rebuild_graphs(QCustomPlot& plot, const ChartState& state);

}  // namespace turnpoint::views
