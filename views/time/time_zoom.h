// SPDX-License-Identifier: Apache-2.0
// The stretch of time that every view of a schedule shows: one for all of them, whichever of them moves it.
#pragma once

#include <QObject>
#include <QPointer>
#include <memory>

#include "views/common/selection_model.h"
#include "views/time/time_axis.h"

namespace turnpoint::views {

class TimeZoom : public QObject {
  Q_OBJECT
 public:
  const TimeView& time() const { return time_; }
  double middle() const { return (time_.from() + time_.to()) / 2; }

  /// Another schedule is shown whole.
  void set_schedule(const SchedulePtr& schedule);
  /// A range of time that is picked comes into sight.
  void follow(SelectionModel* selection);
  void pick_range(double from, double to);  ///< in any order

  void fit();
  void show(double from, double to);
  void zoom(double factor, double still);
  void pan(double share);  ///< of what is on show; positive: to later times
  void reveal(double from, double to);

 signals:
  void changed();

 private:
  TimeView time_;
  SchedulePtr schedule_;
  QPointer<SelectionModel> selection_;
};
using TimeZoomPtr = std::shared_ptr<TimeZoom>;

}  // namespace turnpoint::views
