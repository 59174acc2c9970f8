// SPDX-License-Identifier: Apache-2.0
// Finds what a window is made of.
#pragma once

#include <memory>

#include "app/dock_layout.h"
#include "app/exports.h"
#include "app/main_window.h"
#include "app/opener.h"
#include "app/sessions.h"

namespace turnpoint::test {

/// The one child of this type.
template <class Part>
Part* part(app::MainWindow& window) {
  return window.findChild<Part*>();
}
template <class Part>
Part* part(const std::unique_ptr<app::MainWindow>& window) {
  return part<Part>(*window);
}

/// The tab of this type and, where one is named, of this key.
template <class Kind>
Kind* tab(app::MainWindow& window, const char* key = nullptr) {
  for (app::Tab* each : window.tabs())
    if (auto* found = dynamic_cast<Kind*>(each); found && (!key || each->key() == QLatin1String(key))) return found;
  return nullptr;
}
template <class Kind>
Kind* tab(const std::unique_ptr<app::MainWindow>& window, const char* key = nullptr) {
  return tab<Kind>(*window, key);
}

/// The placement that the views show; null where they show none.
inline PlacementPlanPtr placement_on_show(app::MainWindow& window) {
  const auto& plan = window.work().loader.picked_plan();
  const auto* placement = plan ? std::get_if<PlacementPlanPtr>(&*plan) : nullptr;
  return placement ? *placement : nullptr;
}

}  // namespace turnpoint::test
