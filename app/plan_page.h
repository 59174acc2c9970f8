// SPDX-License-Identifier: Apache-2.0
// Keeps the Plan panel on the picked point, its plan and its peak.
#pragma once

#include <QObject>

namespace turnpoint::views {
class PlanPanel;
}

namespace turnpoint::app {

class ChartPage;
struct Workspace;

class PlanPage : public QObject {
  Q_OBJECT
 public:
  PlanPage(Workspace& work, ChartPage& chart, views::PlanPanel* panel);

 private:
  void show_state();
  void show_point();
  void show_plan();
  void show_peak();

  Workspace& work_;
  views::PlanPanel* panel_;
};

}  // namespace turnpoint::app
