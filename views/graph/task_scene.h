// SPDX-License-Identifier: Apache-2.0
// What the canvas of a task graph draws, as plain data: boxes inside boxes, level by level, with the lines between the
// children of each open box. Geometry is made once per fold state; colours and texts of the placement are put on
// separately.
#pragma once

#include <QFontMetricsF>
#include <QRectF>
#include <QString>
#include <functional>
#include <memory>
#include <vector>

#include "core/model/task_hierarchy.h"
#include "views/graph/graph_scene.h"
#include "views/graph/level_layout.h"
#include "views/graph/task_figures.h"

namespace turnpoint::views {

enum class TaskColor { device, time, bytes, scope, cluster };

struct TaskBox {
  QRectF rect;
  std::uint32_t index = 0;  ///< group or task
  bool is_group = false, open = false;
  bool fold = false;  ///< a closed group of one forward task with what belongs to it
  std::int32_t parent = -1;
  std::uint32_t child_begin = 0, child_end = 0;  ///< of an open one: boxes in the order of its children
  std::uint32_t edge_begin = 0, edge_end = 0;    ///< likewise: lines between them
  QString name;
  // Of the placement, by decorate().
  QString value;   ///< on the first line: time
  QString detail;  ///< on the second: tasks and bytes
  std::uint8_t color = 0;
  std::uint32_t shares = kNone;  ///< where its kDeviceColors shares begin in TaskScene::shares; kNone: one colour
  bool critical = false;         ///< a task of the critical path, or a group with some
  float critical_share = 0;      ///< of a group's time
};

struct TaskScene {
  QSizeF size;
  std::vector<TaskBox> boxes;     ///< [0] is the root, always open; parents precede their children
  std::vector<int> box_of_group;  ///< -1: none
  std::vector<QPointF> points;
  std::vector<std::uint32_t> point_begin{0};  ///< one more than lines
  std::vector<std::uint32_t> line_edge;       ///< by line: the hierarchy's edge
  std::size_t lines_left_out = 0;             ///< long and light ones of crowded levels
  double typical_width = 100;                 ///< of a box that is not open

  // Of the placement, by decorate().
  std::vector<float> shares;
  std::vector<float> line_width;
  std::vector<std::uint8_t> line_heat;  ///< 0: nothing crosses devices
  std::vector<bool> line_critical;
  double largest_line = 0;     ///< that colours and widths of lines are measured by
  double heat_bounds[4] = {};  ///< lower bounds of heat steps 1..4, for TaskColor::time and bytes

  std::size_t lines() const { return line_edge.size(); }
  /// The smallest box on show that holds a task.
  int box_of(const TaskHierarchy& hierarchy, TaskIndex task) const;
};

class TaskSceneBuilder {
 public:
  using Find = std::function<LevelLayoutPtr(const LevelRequest&)>;

  /// `open` by group; a group counts as open only where all above it are.
  TaskSceneBuilder(const TaskHierarchy& hierarchy, const std::vector<bool>& open, const SceneStyle& style);

  /// The levels that `find` does not know and whose open children it does. A level's size decides that of the level
  /// around it, so there are more to ask for until none is missing.
  std::vector<LevelRequest> missing(const Find& find);
  /// `find` answers every request. `room`: of the window.
  std::shared_ptr<TaskScene> build(const Find& find, QSizeF room);
  std::size_t boxes() const { return boxes_; }

 private:
  struct Level {
    std::uint32_t group = 0;
    LevelRequest whole;
    std::vector<bool> loose;           ///< set as a grid
    LevelRequest request;              ///< what is left of the whole
    std::vector<std::uint32_t> edges;  ///< the hierarchy's, like request.edges
    std::size_t left_out = 0;
    LevelLayout layout;
    QSizeF size;  ///< of the open box; empty: not known yet
  };
  const TaskHierarchy& hierarchy_;
  const SceneStyle style_;
  std::vector<Level> levels_;  ///< by breadth
  std::vector<int> level_of_;  ///< by group
  std::size_t boxes_ = 1;

  bool make_request(Level& level) const;
  QSizeF closed_size(const TaskHierarchy::Child& child) const;
  std::vector<LevelRequest> solve(const Find& find, QSizeF room);
  void fill(TaskScene& scene, std::size_t box, const Level& level) const;
};

/// Texts, colours and line widths.
void decorate(TaskScene& scene, const TaskFigures& figures, TaskColor color);

/// The hierarchy's edges to and from a box, among its level, that the scene has no line of; heaviest first.
std::vector<std::uint32_t> lines_left_out_of(const TaskScene& scene, const TaskHierarchy& hierarchy, int box,
                                             std::size_t most);

struct TaskHit {
  int box = -1, line = -1;
  bool header = false;  ///< on an open box's title
  friend bool operator==(const TaskHit&, const TaskHit&) = default;
};
/// What lies at a scene position; lines within `reach` scene pixels. The root is no hit.
TaskHit hit_test(const TaskScene& scene, QPointF position, double reach);

/// Graph tasks that a box stands for.
std::span<const TaskIndex> tasks_in(const TaskHierarchy& hierarchy, const TaskBox& box);

}  // namespace turnpoint::views
