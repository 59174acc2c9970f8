// SPDX-License-Identifier: Apache-2.0
// What the window writes for others: the formats of core/export and the chart, in one menu; which can be written now,
// and why the others cannot.
#pragma once

#include <QObject>

#include "core/export/format.h"

class QMenu;

namespace turnpoint::views {
class PlanPanel;
}

namespace turnpoint::app {

class ActionSet;
class ChartPage;
class EngineDialog;
class Voice;
struct Workspace;

class Exports : public QObject {
  Q_OBJECT
 public:
  Exports(Workspace& work, const ActionSet& actions, Voice& voice, ChartPage& chart, views::PlanPanel& panel,
          QWidget* window);
  QMenu* menu() const { return menu_; }
  void export_to(const ExportFormat& format, const QString& path) { export_to(format, path, source()); }
  void ask_export(const ExportFormat& format);                              ///< where to, then export_to()
  void ask_export(const ExportFormat& format, const ExportSource& source);  ///< of this, not of what is picked then
  /// What can be written now; `picked` only where there is a plan (why_no_plan).
  ExportSource source() const;
  QString why_no_plan() const;  ///< empty: one is picked
  EngineDialog* engine_dialog() const { return engines_; }
  bool export_chart(const QString& path);  ///< .svg, .pdf or .png by suffix

 private:
  void show_plans();
  void export_to(const ExportFormat& format, const QString& path, const ExportSource& source);

  Workspace& work_;
  const ActionSet& actions_;
  Voice& voice_;
  ChartPage& chart_;
  QMenu* menu_;
  EngineDialog* engines_;
};

}  // namespace turnpoint::app
