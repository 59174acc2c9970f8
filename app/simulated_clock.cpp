// SPDX-License-Identifier: Apache-2.0
#include "app/simulated_clock.h"

#include <limits>
#include <optional>

#include "app/search_runner.h"
#include "app/task_manager.h"
#include "core/schedule/simulated_points.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {

/// Of the line's points alone, since only those are in the order that the definition wants.
std::optional<std::size_t> turning_point_of(const Result& drawn, const std::vector<std::size_t>& line) {
  std::vector<ResultPoint> best;
  for (const std::size_t i : line) best.push_back(drawn.points[i]);
  const auto found = find_turning_point(best, drawn.slowest_considered_s);
  return found ? std::optional(line[*found]) : std::nullopt;
}

SimulatedClock::Curve on_the_clock(const ResultPtr& result, const SimulatedCurve& curve) {
  auto drawn = std::make_shared<Result>(*result);
  drawn->clock = Clock::simulated;
  drawn->exact = false;
  drawn->gap.reset();
  drawn->lower_bound.clear();
  drawn->near_best.reset();
  for (ResultPoint& point : drawn->points) {
    point.time_s = std::numeric_limits<double>::quiet_NaN();
    point.fits = false;
  }
  const std::int64_t limit = result->scenario->memory_limit();
  for (std::size_t i = 0; i < curve.index.size(); ++i) {
    ResultPoint& point = drawn->points[curve.index[i]];
    point.time_s = curve.cost[i].time_s;
    point.memory_bytes = curve.cost[i].memory_bytes;
    point.fits = curve.cost[i].fits(limit);
  }
  auto line = std::make_shared<std::vector<std::size_t>>();
  for (const std::size_t entry : curve.line) line->push_back(curve.index[entry]);
  drawn->turning_point = turning_point_of(*drawn, *line);
  return {result, std::move(drawn), std::move(line)};
}

}  // namespace

SimulatedClock::SimulatedClock(SearchRunner& runner, TaskManager& tasks, QObject* parent)
    : QObject(parent), runner_(runner), tasks_(tasks) {
  connect(&runner, &SearchRunner::result_changed, this, &SimulatedClock::update);
}

void SimulatedClock::set_on(bool on) {
  if (on_ == on) return;
  on_ = on;
  if (on) {
    update();
  } else {
    for (const auto& [name, result] : asked_) tasks_.cancel_purpose(QStringLiteral("clock:") + views::to_qt(name));
    asked_.clear();
  }
  emit changed();
}

const SimulatedClock::Curve* SimulatedClock::find(const std::string& method) const {
  const auto found = curves_.find(method);
  return found == curves_.end() ? nullptr : &found->second;
}

bool SimulatedClock::settled() const { return asked_.empty(); }

void SimulatedClock::update() {
  if (!on_) return;
  for (const MethodRun& run : runner_.runs()) {
    if (!run.enabled || !run.result || !run.result->plans || run.result->points.empty()) {
      if (!run.result) curves_.erase(run.name);
      continue;
    }
    if (run.result->clock == Clock::simulated) continue;
    const auto there = curves_.find(run.name);
    const auto asked = asked_.find(run.name);
    if (there != curves_.end() && there->second.of == run.result) continue;
    if (asked != asked_.end() && asked->second == run.result) continue;
    // A curve of another model has nothing to say while the new one is on its way.
    if (there != curves_.end() && there->second.of->scenario->model != run.result->scenario->model)
      curves_.erase(there);
    asked_[run.name] = run.result;
    auto made = std::make_shared<std::optional<Expected<Curve>>>();
    tasks_.start(
        QStringLiteral("clock:") + views::to_qt(run.name), tr("%1 simulated").arg(views::to_qt(run.title)),
        [result = run.result, most = run.coarse ? kMostOfCoarse : kMost, made](const RunContext& context) {
          const auto curve = simulated_curve(*result, most, context);
          if (curve)
            made->emplace(on_the_clock(result, *curve));
          else
            made->emplace(curve.error());
        },
        [this, name = run.name, result = run.result, made](TaskOutcome outcome) {
          const auto now = asked_.find(name);
          if (now == asked_.end()) return;  // switched off
          // While a slider moves the last one is better than none, though a newer is on its way.
          if (now->second == result) asked_.erase(now);
          if (outcome == TaskOutcome::finished && *made) {
            if (**made)
              curves_[name] = std::move(***made);
            else if ((*made)->error().code != ErrorCode::cancelled)
              emit failed((*made)->error(), tr("Simulated clock"));
          }
          emit changed();
        },
        run.coarse ? Preempt::let_it_finish : Preempt::stop_running);
  }
}

}  // namespace turnpoint::app
