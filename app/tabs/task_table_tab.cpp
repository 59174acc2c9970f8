// SPDX-License-Identifier: Apache-2.0
#include "app/tab.h"
#include "views/task_table/task_table_view.h"

namespace turnpoint::app {

Tab* task_table_tab(const TabParts& parts) {
  return new ViewTab(parts, "task_table", Tab::tr("Tasks"), new views::TaskTableView(parts.window));
}

}  // namespace turnpoint::app
