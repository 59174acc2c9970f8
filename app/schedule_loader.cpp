// SPDX-License-Identifier: Apache-2.0
#include "app/schedule_loader.h"

#include <optional>

#include "app/plan_loader.h"
#include "app/task_manager.h"
#include "core/base/discard.h"
#include "core/plan/placement_plan.h"
#include "core/schedule/plan_schedule.h"
#include "views/common/format.h"
#include "views/common/selection_model.h"
#include "views/memory/memory_view.h"
#include "views/timeline/timeline_view.h"

namespace turnpoint::app {

namespace {

const QString kSchedulePurpose = QStringLiteral("schedule");

Expected<SchedulePtr> schedule_of(const Scenario& scenario, const PlacementPlan& plan) {
  const std::int64_t limit = scenario.settings.memory_limit > 0 ? scenario.settings.memory_limit : kUnlimitedBytes;
  auto simulation = simulate(*plan.graph, plan.placement, true, "placement on show");
  if (!simulation) return simulation.error();
  return make_schedule(plan.graph, plan.placement, *simulation, limit, plan.operator_of);
}

Expected<SchedulePtr> schedule_of(const Scenario& scenario, const AnyPlan& plan) {
  return visit_plan(
      plan, [&](const Plan& one) { return plan_schedule(scenario, one); },
      [&](const RatioPlan& one) { return plan_schedule(scenario, one); },
      [&](const PlacementPlan& one) { return schedule_of(scenario, one); });
}

/// The plan's own address: what asked_ and shown_ compare and hold.
std::shared_ptr<const void> key_of(const std::optional<AnyPlan>& plan) {
  return plan ? std::visit([](const auto& one) -> std::shared_ptr<const void> { return one; }, *plan) : nullptr;
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
  const auto& plan = plans_.picked_plan();
  const std::shared_ptr<const void> wanted = key_of(plan);
  if (!wanted) {
    if (asked_ || loaded_.schedule) clear(tr("Pick a point in the chart to see its schedule."));
    return;
  }
  if (wanted == asked_) return;
  if (kind_of(*plan) != PlanKind::placement && seen_.empty()) {
    // Nobody sees it: the old one would be wrong, the new one is made when somebody looks.
    if (loaded_.schedule) clear(QString());
    if (wanted_at_rest_) rest_.start();
    return;
  }
  start();
}

void ScheduleLoader::start() {
  rest_.stop();
  if (!plans_.picked_plan()) return;
  const AnyPlan plan = *plans_.picked_plan();
  const std::shared_ptr<const void> wanted = key_of(plan);
  asked_ = wanted;
  auto made = std::make_shared<std::optional<Expected<LoadedSchedule>>>();
  tasks_.start(
      kSchedulePurpose, tr("Schedule"),
      [plan, scenario = plans_.result()->scenario, made](const RunContext& context) {
        auto schedule = schedule_of(*scenario, plan);
        if (context.cancelled()) return;
        if (!schedule) {
          made->emplace(schedule.error());
          return;
        }
        made->emplace(LoadedSchedule{*schedule, views::TimelineView::prepare(*schedule),
                                     views::MemoryView::prepare(*schedule), kind_of(plan) == PlanKind::placement});
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
