// SPDX-License-Identifier: Apache-2.0
// Finds groups and tasks of a hierarchy by a part of their name.
#pragma once

#include <QString>
#include <vector>

#include "core/model/task_hierarchy.h"

namespace turnpoint::views {

inline constexpr std::size_t kMostMatches = 10000;

/// Groups first, then tasks in the hierarchy's order; upper and lower case alike; at most kMostMatches. Groups of a
/// forward task with its backward are not groups of their own here.
std::vector<TaskHierarchy::Child> find_by_name(const TaskHierarchy& hierarchy, const QString& text);

}  // namespace turnpoint::views
