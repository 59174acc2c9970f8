// SPDX-License-Identifier: Apache-2.0
#include "app/plan_loader.h"

#include "app/search_runner.h"
#include "app/task_manager.h"
#include "views/common/selection_model.h"

namespace turnpoint::app {

PlanLoader::PlanLoader(SearchRunner& runner, TaskManager& tasks, views::SelectionModel& selection, QObject* parent)
    : QObject(parent), runner_(runner), tasks_(tasks), selection_(selection) {
  throttle_.setSingleShot(true);
  throttle_.setInterval(kEvery_ms);
  connect(&throttle_, &QTimer::timeout, this, &PlanLoader::load);
  connect(&selection, &views::SelectionModel::point_changed, this, &PlanLoader::request);
  connect(&selection, &views::SelectionModel::point_picked_again, this, &PlanLoader::request);
  connect(&runner, &SearchRunner::result_changed, this, &PlanLoader::request);
}

PlanPtr PlanLoader::plan() const {
  if (!plan_) return nullptr;
  const auto* plan = std::get_if<PlanPtr>(&*plan_);
  return plan ? *plan : as_axes_;
}

void PlanLoader::picked(ResultPtr& result, std::size_t& index) const {
  const auto& point = selection_.point();
  const MethodRun* run = point ? runner_.find(point->method) : nullptr;
  if (!run || !run->result || point->index >= run->result->points.size()) return;
  result = run->result;
  index = point->index;
}

bool PlanLoader::up_to_date() const {
  ResultPtr result;
  std::size_t index = 0;
  picked(result, index);
  return result == result_ && (!result || (index == index_ && (plan_ || !result->plans)));
}

void PlanLoader::request() {
  ResultPtr result;
  std::size_t index = 0;
  picked(result, index);
  // Nothing is picked, as when another model was opened: the plan on show goes at once.
  if (throttle_.isActive() && result) return;
  // The first of a burst goes at once (a click answers immediately), the rest wait for the timer.
  load();
  throttle_.start();
}

void PlanLoader::load() {
  ResultPtr result;
  std::size_t index = 0;
  picked(result, index);
  if (result == asked_ && index == asked_index_) return;
  asked_ = result;
  asked_index_ = index;
  // A placement is there as soon as its point is.
  const bool any = result && result->plans;
  if (!any || result->plans->kind(index) == PlanKind::placement) {
    show(any ? std::optional(result->plans->plan(index)) : std::nullopt, result, index);
    return;
  }
  auto made = std::make_shared<std::optional<AnyPlan>>();
  tasks_.start(
      QStringLiteral("plan"), tr("Plan"),
      [result, index, made](const RunContext& context) {
        if (!context.cancelled()) *made = result->plans->plan(index);
      },
      [this, result, index, made](TaskOutcome) {
        if (result != asked_ || index != asked_index_) return;
        if (!*made) {
          // Stopped: the plan on show stays, and the next pick asks again, be it of the same point.
          asked_ = nullptr;
          return;
        }
        show(*made, result, index);
      });
}

void PlanLoader::show(const std::optional<AnyPlan>& plan, const ResultPtr& result, std::size_t index) {
  plan_ = plan;
  const auto* ratio = plan ? std::get_if<RatioPlanPtr>(&*plan) : nullptr;
  as_axes_ = ratio ? std::make_shared<const Plan>(as_axes(**ratio)) : nullptr;
  result_ = result;
  index_ = index;
  emit plan_changed();
}

}  // namespace turnpoint::app
