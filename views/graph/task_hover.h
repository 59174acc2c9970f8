// SPDX-License-Identifier: Apache-2.0
// The words of the task graph's hover box: what a task, a group or a line is, where it lies and what it moves.
#pragma once

#include "views/graph/hover_text.h"
#include "views/graph/task_scene.h"

namespace turnpoint::views {

HoverText task_hover(const TaskFigures& figures, TaskIndex task);
HoverText group_hover(const TaskFigures& figures, std::uint32_t group);
/// Of an edge of the hierarchy: what two boxes send each other.
HoverText line_hover(const TaskFigures& figures, std::uint32_t edge);

QString kind_text(TaskKind kind);
QString device_text(const TaskFigures& figures, std::uint32_t device);

}  // namespace turnpoint::views
