// SPDX-License-Identifier: Apache-2.0
// What the window writes for others: the formats of core/export and the chart, in one menu; which can be written now,
// and why the others cannot.
#pragma once

#include <QObject>

class QMenu;

namespace turnpoint {
struct ExportFormat;
}
namespace turnpoint::views {
class PlanPanel;
}

namespace turnpoint::app {

class ActionSet;
class ChartPage;
class Voice;
struct Workspace;

class Exports : public QObject {
  Q_OBJECT
 public:
  Exports(Workspace& work, const ActionSet& actions, Voice& voice, ChartPage& chart, views::PlanPanel& panel,
          QWidget* window);
  QMenu* menu() const { return menu_; }
  void export_to(const ExportFormat& format, const QString& path);
  bool export_chart(const QString& path);  ///< .svg, .pdf or .png by suffix

 private:
  void show_plans();
  void ask_export(const ExportFormat& format);

  Workspace& work_;
  const ActionSet& actions_;
  Voice& voice_;
  ChartPage& chart_;
  QMenu* menu_;
};

}  // namespace turnpoint::app
