// SPDX-License-Identifier: Apache-2.0
#include "app/tab.h"

namespace turnpoint::app {

// Each in the source of its name.
Tab *graph_tab(const TabParts&), *timeline_tab(const TabParts&), *memory_tab(const TabParts&),
    *task_table_tab(const TabParts&), *plan_table_tab(const TabParts&), *devices_tab(const TabParts&),
    *comparison_tab(const TabParts&), *parallelism_tab(const TabParts&), *hardware_tab(const TabParts&),
    *validation_tab(const TabParts&), *learning_tab(const TabParts&), *study_tab(const TabParts&),
    *sweep_tab(const TabParts&), *why_tab(const TabParts&), *notes_tab(const TabParts&);

std::vector<Tab*> make_tabs(const TabParts& parts) {
  std::vector<Tab*> tabs;
  for (const auto make :
       {graph_tab, why_tab, timeline_tab, memory_tab, task_table_tab, plan_table_tab, devices_tab, comparison_tab,
        parallelism_tab, sweep_tab, learning_tab, hardware_tab, validation_tab, study_tab, notes_tab})
    tabs.push_back(make(parts));
  return tabs;
}

}  // namespace turnpoint::app
