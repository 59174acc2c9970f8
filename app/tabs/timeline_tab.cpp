// SPDX-License-Identifier: Apache-2.0
#include "app/actions.h"
#include "app/tabs/schedule_tab.h"
#include "core/export/format.h"
#include "views/timeline/timeline_view.h"

namespace turnpoint::app {

Tab* timeline_tab(const TabParts& parts) {
  auto* view = new views::TimelineView(parts.window, parts.zoom);
  if (const ExportFormat* trace = find_format("trace")) view->add_export(parts.actions[*trace]);
  return new ScheduleTab(parts, "timeline", Tab::tr("Timeline"), view, &LoadedSchedule::timeline);
}

}  // namespace turnpoint::app
