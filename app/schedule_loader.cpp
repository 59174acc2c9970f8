// SPDX-License-Identifier: Apache-2.0
#include "app/schedule_loader.h"

#include <optional>

#include "app/plan_loader.h"
#include "app/task_manager.h"
#include "core/base/discard.h"
#include "core/plan/placement_plan.h"
#include "core/plan/plan_schedule.h"
#include "views/common/format.h"
#include "views/common/selection_model.h"
#include "views/memory/memory_view.h"
#include "views/timeline/timeline_view.h"

namespace turnpoint::app {

namespace {

const QString kSchedulePurpose = QStringLiteral("schedule");

Expected<SchedulePtr> placement_schedule(const PlacementPlan& plan, const Scenario& scenario) {
  const std::int64_t limit = scenario.settings.memory_limit > 0 ? scenario.settings.memory_limit : kUnlimitedBytes;
  auto simulation = simulate(*plan.graph, plan.placement, true, "placement on show");
  if (!simulation) return simulation.error();
  return make_schedule(plan.graph, plan.placement, *simulation, limit, plan.operator_of);
}

}  // namespace

ScheduleLoader::ScheduleLoader(PlanLoader& plans, TaskManager& tasks, views::SelectionModel& selection, QObject* parent)
    : QObject(parent), plans_(plans), tasks_(tasks), selection_(selection) {
  clear(tr("Pick a point in the chart to see its schedule."));
  rest_.setSingleShot(true);
  rest_.setInterval(kRest_ms);
  connect(&rest_, &QTimer::timeout, this, &ScheduleLoader::start);
  connect(&plans, &PlanLoader::plan_changed, this, &ScheduleLoader::load);
}

void ScheduleLoader::set_looked_at(const QObject* view, bool on) {
  if (on)
    seen_.insert(view);
  else
    seen_.erase(view);
  if (on) load();
}

void ScheduleLoader::set_wanted_at_rest(bool on) {
  wanted_at_rest_ = on;
  if (on)
    load();
  else
    rest_.stop();
}

bool ScheduleLoader::up_to_date() const { return asked_ == shown_ && !rest_.isActive(); }

void ScheduleLoader::clear(const QString& message) {
  rest_.stop();
  asked_ = shown_ = nullptr;
  message_ = message;
  tasks_.cancel_purpose(kSchedulePurpose);
  selection_.follow_schedule(nullptr);
  discard(std::exchange(loaded_, {}));
  emit changed();
}

void ScheduleLoader::load() {
  const PlacementPlanPtr placement = plans_.placement();
  const auto plan = plans_.plan();
  std::shared_ptr<const void> wanted = plan;
  if (placement) wanted = placement;
  if (!wanted) {
    if (asked_ || loaded_.schedule) clear(tr("Pick a point in the chart to see its schedule."));
    return;
  }
  if (wanted == asked_) return;
  if (!placement && seen_.empty()) {
    // Nobody sees it: the old one would be wrong, the new one is made when somebody looks.
    if (loaded_.schedule) clear(QString());
    if (wanted_at_rest_) rest_.start();
    return;
  }
  start();
}

void ScheduleLoader::start() {
  rest_.stop();
  const PlacementPlanPtr placement = plans_.placement();
  const auto plan = plans_.plan();
  std::shared_ptr<const void> wanted = plan;
  if (placement) wanted = placement;
  if (!wanted) return;
  asked_ = wanted;
  auto made = std::make_shared<std::optional<Expected<LoadedSchedule>>>();
  tasks_.start(
      kSchedulePurpose, tr("Schedule"),
      [placement, plan, scenario = plans_.result()->scenario, made](const RunContext& context) {
        auto schedule = placement ? placement_schedule(*placement, *scenario) : plan_schedule(*scenario, *plan);
        if (context.cancelled()) return;
        if (!schedule) {
          made->emplace(schedule.error());
          return;
        }
        made->emplace(LoadedSchedule{*schedule, views::TimelineView::prepare(*schedule),
                                     views::MemoryView::prepare(*schedule), placement != nullptr});
      },
      [this, wanted, made](TaskOutcome) {
        if (wanted != asked_) return;
        if (!*made) {
          asked_ = shown_;  // stopped: the next look starts it again
          return;
        }
        if (!**made) {
          clear(views::to_qt((*made)->error().message()));
          return;
        }
        discard(std::exchange(loaded_, std::move(***made)));
        shown_ = wanted;
        message_.clear();
        selection_.follow_schedule(loaded_.schedule);
        emit changed();
      });
}

}  // namespace turnpoint::app
