// SPDX-License-Identifier: Apache-2.0
// What the sources of FrontierChart share.
#pragma once

#include "views/frontier/chart_items.h"
#include "views/frontier/frontier_chart.h"
#include "views/frontier/marker_groups.h"

namespace turnpoint::views {

struct FrontierChart::Private {
  ChartState state;
  SelectionModel* selection = nullptr;
  QSharedPointer<NumberTicker> x_ticker, y_ticker;
  OverlayItem* overlay = nullptr;
  QSize built_for;  ///< the axis rect for which the graphs were thinned
};

}  // namespace turnpoint::views
