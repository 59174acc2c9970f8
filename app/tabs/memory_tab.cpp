// SPDX-License-Identifier: Apache-2.0
#include "app/tabs/schedule_tab.h"
#include "views/memory/memory_view.h"

namespace turnpoint::app {

Tab* memory_tab(const TabParts& parts) {
  return new ScheduleTab(parts, "memory", Tab::tr("Memory"), new views::MemoryView(parts.window, parts.zoom),
                         &LoadedSchedule::memory);
}

}  // namespace turnpoint::app
