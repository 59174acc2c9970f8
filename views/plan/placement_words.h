// SPDX-License-Identifier: Apache-2.0
// A placement in words and rows.
#pragma once

#include <QString>
#include <vector>

#include "core/plan/placement_plan.h"
#include "views/common/theme_colors.h"
#include "views/plan/legend_table.h"
#include "views/plan/plan_words.h"

namespace turnpoint::views {

/// "4 506 tasks on 16 devices, 11.0 times as fast as one device (9.4 s).", the peak communication, "Fits." and, where a
/// limit moved tasks, how many.
QString describe_placement(const PlacementPlan& placement);

/// A row per device: computing share of the makespan, peak of its limit. Of many, the fullest, then how many are left.
std::vector<PartRow> device_rows(const PlacementPlan& placement, const ThemeColors& colors);
/// A row per stage of the method with the makespan after it; those that gained something in the colour given.
std::vector<PartRow> stage_rows(const PlacementPlan& placement, const QColor& color);
/// Kind, scope, device, time and bytes of one task.
std::vector<Fact> describe_task(const PlacementPlan& placement, TaskIndex task);

}  // namespace turnpoint::views
