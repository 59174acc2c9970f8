// SPDX-License-Identifier: Apache-2.0
#include "app/pick_keeper.h"

#include <cmath>

#include "app/fit_judge.h"
#include "app/search_runner.h"
#include "app/simulated_clock.h"
#include "core/schedule/fitting.h"
#include "views/common/format.h"
#include "views/frontier/chart_data.h"

namespace turnpoint::app {

namespace {

/// Where nothing fits, the plan that comes nearest to it.
std::size_t fastest_point(const Result& result) {
  if (const auto best = result.fastest_that_fits()) return *best;
  if (result.clock == Clock::additive) return least_peak(result).value_or(0);
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < result.points.size(); ++i)
    if (views::drawable(result.points[i]) &&
        (!least || result.points[i].memory_bytes < result.points[*least].memory_bytes))
      least = i;
  return least.value_or(0);
}

}  // namespace

PickKeeper::PickKeeper(SearchRunner& runner, const FitJudge& judge, const SimulatedClock& clock,
                       views::SelectionModel& selection, QObject* parent)
    : QObject(parent), runner_(runner), judge_(judge), clock_(clock), selection_(selection) {
  connect(&runner, &SearchRunner::result_changed, this, &PickKeeper::result_changed);
  connect(&judge, &FitJudge::judged_changed, this, &PickKeeper::result_changed);
  connect(&clock, &SimulatedClock::changed, this, [this] {
    if (const auto& picked = selection_.point()) result_changed(views::to_qt(picked->method));
  });
  connect(&selection, &views::SelectionModel::point_changed, this, &PickKeeper::point_changed);
}

void PickKeeper::want(const std::string& method, double memory_bytes) {
  follows_ = Follows::memory;
  method_ = method;
  memory_ = memory_bytes;
}

void PickKeeper::want(const std::string& method) {
  want(method, 0);
  if (const MethodRun* run = runner_.find(method); run && run->result) result_changed(views::to_qt(method));
}

void PickKeeper::point_changed() {
  if (own_) return;
  const auto& point = selection_.point();
  const MethodRun* run = point ? runner_.find(point->method) : nullptr;
  const ResultPtr result = run && run->result ? drawn(*run) : nullptr;
  if (!result || point->index >= result->points.size()) return;
  const bool subject = run == runner_.subject();
  follows_ = subject && point->index == fastest_point(*result)  ? Follows::fastest
             : subject && result->turning_point == point->index ? Follows::turning_point
                                                                : Follows::memory;
  method_ = point->method;
  memory_ = static_cast<double>(run->result->points[point->index].memory_bytes);
}

ResultPtr PickKeeper::drawn(const MethodRun& run) const {
  const SimulatedClock::Curve* curve = clock_.on() ? clock_.find(run.name) : nullptr;
  return curve && curve->of == run.result ? curve->drawn : judge_.judged(run);
}

std::size_t PickKeeper::nearest_memory(const MethodRun& run) const {
  const ResultPtr shown = drawn(run);
  std::size_t best = 0;
  double distance = 1e300;
  for (std::size_t i = 0; i < run.result->points.size(); ++i) {
    if (!views::drawable(shown->points[i])) continue;
    const double bytes = static_cast<double>(run.result->points[i].memory_bytes);
    const double d = std::abs(std::log(bytes + 1) - std::log(memory_ + 1));
    if (d < distance) distance = d, best = i;
  }
  return best;
}

void PickKeeper::pick(const std::string& method, std::size_t index) {
  own_ = true;
  selection_.pick_point(views::PickedPoint{method, index});
  own_ = false;
}

void PickKeeper::result_changed(const QString& changed) {
  const MethodRun* subject = runner_.subject();
  const bool of_subject = follows_ != Follows::memory;
  const std::string wanted = of_subject ? (subject ? subject->name : std::string()) : method_;
  const MethodRun* run = runner_.find(wanted);
  const bool gone = !run || !run->enabled || !run->result || run->result->points.empty();
  if (gone) {
    // A picked marker whose method was switched off: back to the frontier.
    if (!of_subject && (!run || !run->enabled) && subject && subject->result && !subject->result->points.empty()) {
      follows_ = Follows::fastest;
      result_changed(changed);
    } else if (selection_.point() && !(subject && subject->result)) {
      own_ = true;
      selection_.pick_point(std::nullopt);
      own_ = false;
    }
    return;
  }
  if (changed.toStdString() != wanted && selection_.point()) return;
  const Result& result = *drawn(*run);
  const bool turning = follows_ == Follows::turning_point && result.turning_point;
  pick(wanted, !of_subject ? nearest_memory(*run) : turning ? *result.turning_point : fastest_point(result));
}

}  // namespace turnpoint::app
