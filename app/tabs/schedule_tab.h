// SPDX-License-Identifier: Apache-2.0
// A tab that draws the schedule of the picked plan, which is made while somebody looks.
#pragma once

#include "app/tab.h"

namespace turnpoint::app {

template <class View, class Summary>
class ScheduleTab : public ViewTab<View> {
 public:
  ScheduleTab(const TabParts& parts, const char* key, const QString& title, View* of, Summary LoadedSchedule::*part)
      : ViewTab<View>(parts, key, title, of) {
    const ScheduleLoader* schedules = &parts.work.schedules;
    QObject::connect(schedules, &ScheduleLoader::changed, this, [=] {
      of->set_message(schedules->message());
      of->set_prepared(schedules->loaded().*part);
    });
    QObject::connect(of, &View::export_requested, this, &Tab::ask_export_picture);
  }

 protected:
  void looked_at_changed(bool on) override { this->work_.schedules.set_looked_at(this->widget, on); }
};

}  // namespace turnpoint::app
