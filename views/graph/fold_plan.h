// SPDX-License-Identifier: Apache-2.0
// Which groups of a task hierarchy are open at first, and how far "everything" goes.
#pragma once

#include <QStringList>
#include <vector>

#include "core/model/task_hierarchy.h"

namespace turnpoint::views {

/// More boxes than this are not unfolded at once: a picture of them shows nothing that fewer do not.
inline constexpr std::size_t kMostBoxes = 20000;

using OpenGroups = std::vector<bool>;  ///< by group; the root is always open

OpenGroups folded_outline(const TaskHierarchy& hierarchy);
/// Groups that hold a large part of all tasks are looked into, so that one sees layers.
OpenGroups folded_layers(const TaskHierarchy& hierarchy);
/// Opens all inside `group`, level by level, as far as kMostBoxes; false: there would have been more.
bool unfold_inside(const TaskHierarchy& hierarchy, OpenGroups& open, std::uint32_t group);
/// Opens all groups around a task.
void unfold_to(const TaskHierarchy& hierarchy, OpenGroups& open, TaskIndex task);

/// Paths of open groups, for sessions; at most a few thousand.
QStringList open_paths(const TaskHierarchy& hierarchy, const OpenGroups& open);
OpenGroups open_from_paths(const TaskHierarchy& hierarchy, const QStringList& paths);

}  // namespace turnpoint::views
