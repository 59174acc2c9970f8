// SPDX-License-Identifier: Apache-2.0
// Unrolls the picked point to its complete plan on a worker and hands it to all views at once.
#pragma once

#include <QObject>
#include <QTimer>
#include <memory>
#include <optional>

#include "core/plan/result.h"

namespace turnpoint::views {
class SelectionModel;
}

namespace turnpoint::app {

class SearchRunner;
class TaskManager;

class PlanLoader : public QObject {
  Q_OBJECT
 public:
  /// At most this often, so that a dragged slider redraws the graph a dozen times a second and not sixty.
  static constexpr int kEvery_ms = 80;

  PlanLoader(SearchRunner& runner, TaskManager& tasks, views::SelectionModel& selection, QObject* parent = nullptr);

  const std::optional<AnyPlan>& picked_plan() const { return plan_; }
  /// Where it splits operators, for views that show nothing else; of a ratio plan its levels as axes; else null.
  PlanPtr plan() const;
  const ResultPtr& result() const { return result_; }  ///< the plan's
  std::size_t index() const { return index_; }
  /// The shown plan is that of the picked point.
  bool up_to_date() const;

 signals:
  void plan_changed();

 private:
  void request();
  void load();
  void show(const std::optional<AnyPlan>& plan, const ResultPtr& result, std::size_t index);
  void picked(ResultPtr& result, std::size_t& index) const;

  SearchRunner& runner_;
  TaskManager& tasks_;
  views::SelectionModel& selection_;
  QTimer throttle_;
  std::optional<AnyPlan> plan_;
  PlanPtr as_axes_;  ///< of a ratio plan
  ResultPtr result_, asked_;
  std::size_t index_ = 0, asked_index_ = 0;
};

}  // namespace turnpoint::app
