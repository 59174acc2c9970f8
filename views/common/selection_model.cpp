// SPDX-License-Identifier: Apache-2.0
#include "views/common/selection_model.h"

namespace turnpoint::views {

namespace {

/// Whether two schedules run the tasks of one task graph, so that a task of the one is the same task in the other.
bool same_tasks(const Schedule& a, const Schedule& b) {
  if (!a.operator_of.empty() || !b.operator_of.empty() || !a.graph || !b.graph) return false;
  if (a.graph == b.graph) return true;
  if (a.graph->task_count() != b.graph->task_count() || a.graph->edge_count() != b.graph->edge_count()) return false;
  for (TaskIndex t = 0; t < a.graph->task_count(); ++t)
    if (a.graph->names[t] != b.graph->names[t]) return false;
  return true;
}

}  // namespace

void SelectionModel::follow_schedule(SchedulePtr schedule) {
  if (schedule == schedule_) return;
  const bool keeps_tasks = schedule && schedule_ && same_tasks(*schedule, *schedule_);
  schedule_ = std::move(schedule);
  tasks_by_operator_.clear();
  if (schedule_ && !schedule_->operator_of.empty()) {
    for (TaskIndex t = 0; t < schedule_->operator_of.size(); ++t) {
      const OperatorId op = schedule_->operator_of[t];
      if (!op.valid()) continue;
      if (op.index >= tasks_by_operator_.size()) tasks_by_operator_.resize(op.index + 1);
      tasks_by_operator_[op.index].push_back(t);
    }
  }
  emit schedule_changed();
  // What was picked by operator stays picked, as the tasks that now stand for it; and a task of a task graph, so that
  // it can be looked for in one placement after the other.
  if (!keeps_tasks) set_tasks(tasks_of(operators_));
  set_hovered_task(kNone);
  pick_device(kNone);
  pick_time_range(std::nullopt);
  hover_time(std::nullopt);
}

void SelectionModel::pick_point(std::optional<PickedPoint> point) {
  if (point == point_) {
    if (point_) emit point_picked_again();
    return;
  }
  point_ = std::move(point);
  emit point_changed();
}

void SelectionModel::pick_operators(std::set<OperatorId> operators) {
  set_operators(std::move(operators));
  if (schedule_) set_tasks(tasks_of(operators_));
}

void SelectionModel::toggle_operator(OperatorId op) {
  auto operators = operators_;
  if (!operators.erase(op)) operators.insert(op);
  pick_operators(std::move(operators));
}

void SelectionModel::pick_tasks(std::set<TaskIndex> tasks) {
  set_tasks(std::move(tasks));
  if (!tasks_by_operator_.empty()) set_operators(operators_of(tasks_));
}

void SelectionModel::toggle_task(TaskIndex task) {
  auto tasks = tasks_;
  if (!tasks.erase(task)) tasks.insert(task);
  pick_tasks(std::move(tasks));
}

void SelectionModel::hover_point(std::optional<PickedPoint> point) {
  if (point == hovered_point_) return;
  hovered_point_ = std::move(point);
  emit hovered_point_changed();
}

void SelectionModel::hover_operator(OperatorId op) {
  set_hovered_operator(op);
  const bool known = op.valid() && op.index < tasks_by_operator_.size() && !tasks_by_operator_[op.index].empty();
  set_hovered_task(known ? tasks_by_operator_[op.index].front() : kNone);
}

void SelectionModel::hover_task(TaskIndex task) {
  set_hovered_task(task);
  set_hovered_operator(task != kNone && schedule_ ? schedule_->operator_of_task(task) : OperatorId());
}

void SelectionModel::pick_device(std::uint32_t device) {
  if (device == device_) return;
  device_ = device;
  emit device_changed();
}

void SelectionModel::pick_time_range(std::optional<std::pair<double, double>> range) {
  if (range == time_range_) return;
  time_range_ = range;
  emit time_range_changed();
}

void SelectionModel::hover_time(std::optional<double> instant) {
  if (instant == hovered_time_) return;
  hovered_time_ = instant;
  emit hovered_time_changed();
}

std::set<TaskIndex> SelectionModel::tasks_of(const std::set<OperatorId>& operators) const {
  std::set<TaskIndex> tasks;
  for (const OperatorId op : operators)
    if (op.index < tasks_by_operator_.size())
      tasks.insert(tasks_by_operator_[op.index].begin(), tasks_by_operator_[op.index].end());
  return tasks;
}

std::set<OperatorId> SelectionModel::operators_of(const std::set<TaskIndex>& tasks) const {
  std::set<OperatorId> operators;
  for (const TaskIndex t : tasks)
    if (const OperatorId op = schedule_->operator_of_task(t); op.valid()) operators.insert(op);
  return operators;
}

void SelectionModel::set_operators(std::set<OperatorId> operators) {
  if (operators == operators_) return;
  operators_ = std::move(operators);
  emit operators_changed();
}

void SelectionModel::set_tasks(std::set<TaskIndex> tasks) {
  if (tasks == tasks_) return;
  tasks_ = std::move(tasks);
  emit tasks_changed();
}

void SelectionModel::set_hovered_operator(OperatorId op) {
  if (op == hovered_operator_) return;
  hovered_operator_ = op;
  emit hovered_operator_changed();
}

void SelectionModel::set_hovered_task(TaskIndex task) {
  if (task == hovered_task_) return;
  hovered_task_ = task;
  emit hovered_task_changed();
}

}  // namespace turnpoint::views
