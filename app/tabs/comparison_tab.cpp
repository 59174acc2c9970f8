// SPDX-License-Identifier: Apache-2.0
// Methods side by side: follows the chart.
#include "app/chart_page.h"
#include "app/tab.h"
#include "views/comparison/comparison_view.h"

namespace turnpoint::app {

Tab* comparison_tab(const TabParts& parts) {
  auto* view = new views::ComparisonView(parts.window);
  QObject::connect(&parts.chart, &ChartPage::changed, view, &views::ComparisonView::set_data);
  return new ViewTab(parts, "comparison", Tab::tr("Methods"), view);
}

}  // namespace turnpoint::app
