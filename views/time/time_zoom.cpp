// SPDX-License-Identifier: Apache-2.0
#include "views/time/time_zoom.h"

#include <algorithm>

namespace turnpoint::views {

void TimeZoom::set_schedule(const SchedulePtr& schedule) {
  if (schedule == schedule_) return;
  schedule_ = schedule;
  time_.set_makespan(schedule ? schedule->makespan_s : 0);
  emit changed();
}

void TimeZoom::follow(SelectionModel* selection) {
  if (selection == selection_) return;
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  if (!selection_) return;
  connect(selection_, &SelectionModel::time_range_changed, this, [this] {
    const auto& range = selection_->time_range();
    if (range && (!selection_->schedule() || selection_->schedule() == schedule_)) reveal(range->first, range->second);
  });
}

void TimeZoom::pick_range(double from, double to) {
  if (!selection_) return;
  from = std::clamp(from, 0.0, time_.makespan()), to = std::clamp(to, 0.0, time_.makespan());
  selection_->pick_time_range(std::pair<double, double>(std::minmax(from, to)));
}

void TimeZoom::fit() {
  time_.fit();
  emit changed();
}

void TimeZoom::show(double from, double to) {
  time_.show(from, to);
  emit changed();
}

void TimeZoom::zoom(double factor, double still) {
  time_.zoom(factor, still);
  emit changed();
}

void TimeZoom::pan(double share) {
  time_.pan(share * (time_.to() - time_.from()));
  emit changed();
}

void TimeZoom::reveal(double from, double to) {
  if (time_.reveal(from, to)) emit changed();
}

}  // namespace turnpoint::views
