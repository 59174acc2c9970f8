// SPDX-License-Identifier: Apache-2.0
// The words of the task graph's hover box: what a task, a group or a line is, where it lies and what it moves.
#pragma once

#include <QCoreApplication>

#include "views/graph/hover_text.h"
#include "views/graph/task_scene.h"

namespace turnpoint::views {

/// In the language of the window, for what is no QObject.
inline QString task_text(const char* text, int n = -1) {
  return QCoreApplication::translate("TaskGraphView", text, nullptr, n);
}

HoverText task_hover(const TaskFigures& figures, TaskIndex task);
HoverText group_hover(const TaskFigures& figures, std::uint32_t group);
/// Of an edge of the hierarchy: what two boxes send each other.
HoverText line_hover(const TaskFigures& figures, std::uint32_t edge);

QString kind_text(TaskKind kind);
QString device_text(const TaskFigures& figures, std::uint32_t device);

}  // namespace turnpoint::views
