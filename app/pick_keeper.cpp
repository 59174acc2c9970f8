// SPDX-License-Identifier: Apache-2.0
#include "app/pick_keeper.h"

#include <cmath>

#include "app/search_runner.h"

namespace turnpoint::app {

namespace {

std::size_t default_point(const Result& result) {
  if (result.turning_point) return *result.turning_point;
  if (const auto best = result.fastest_that_fits()) return *best;
  return 0;
}

std::size_t nearest_memory(const Result& result, double memory) {
  std::size_t best = 0;
  double distance = 1e300;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const double d = std::abs(std::log(static_cast<double>(result.points[i].memory_bytes) + 1) - std::log(memory + 1));
    if (d < distance) distance = d, best = i;
  }
  return best;
}

}  // namespace

PickKeeper::PickKeeper(SearchRunner& runner, views::SelectionModel& selection, QObject* parent)
    : QObject(parent), runner_(runner), selection_(selection) {
  connect(&runner, &SearchRunner::result_changed, this, &PickKeeper::result_changed);
  connect(&selection, &views::SelectionModel::point_changed, this, &PickKeeper::point_changed);
}

void PickKeeper::want(const std::string& method, double memory_bytes) {
  follows_ = false;
  method_ = method;
  memory_ = memory_bytes;
}

void PickKeeper::point_changed() {
  if (own_) return;
  const auto& point = selection_.point();
  const MethodRun* run = point ? runner_.find(point->method) : nullptr;
  if (!run || !run->result || point->index >= run->result->points.size()) return;
  follows_ = run == runner_.subject() && run->result->turning_point == point->index;
  method_ = point->method;
  memory_ = static_cast<double>(run->result->points[point->index].memory_bytes);
}

void PickKeeper::result_changed(const QString& changed) {
  const MethodRun* subject = runner_.subject();
  const std::string wanted = follows_ ? (subject ? subject->name : std::string()) : method_;
  const MethodRun* run = runner_.find(wanted);
  const bool gone = !run || !run->enabled || !run->result || run->result->points.empty();
  if (gone) {
    // A picked marker whose method was switched off: back to the frontier.
    if (!follows_ && (!run || !run->enabled) && subject && subject->result && !subject->result->points.empty()) {
      follows_ = true;
      result_changed(changed);
    } else if (selection_.point() && !(subject && subject->result)) {
      own_ = true;
      selection_.pick_point(std::nullopt);
      own_ = false;
    }
    return;
  }
  if (changed.toStdString() != wanted && selection_.point()) return;
  const std::size_t index = follows_ ? default_point(*run->result) : nearest_memory(*run->result, memory_);
  own_ = true;
  selection_.pick_point(views::PickedPoint{wanted, index});
  own_ = false;
}

}  // namespace turnpoint::app
