// SPDX-License-Identifier: Apache-2.0
// Keeps the Scenario panel on what is open and searched, and does what it asks for; the list of methods with splits and
// variants of the user's own.
#pragma once

#include <QObject>

namespace turnpoint::views {
class ScenarioPanel;
}

namespace turnpoint::app {

class ActionSet;
class AppSettings;
class ChartPage;
struct Workspace;

class ScenarioPage : public QObject {
  Q_OBJECT
 public:
  ScenarioPage(Workspace& work, const ActionSet& actions, const AppSettings& settings, ChartPage& chart,
               views::ScenarioPanel* panel);
  void fill_choices();  ///< models and machines, those opened before first

 private:
  void connect_methods();
  void ask_method_settings(const QString& name);
  void add_split(const QString& text);
  void show_scenario();
  void show_methods();

  Workspace& work_;
  const AppSettings& settings_;
  ChartPage& chart_;
  views::ScenarioPanel* panel_;
};

}  // namespace turnpoint::app
