// SPDX-License-Identifier: Apache-2.0
// The list of methods: what is on, splits and variants of the user's own, and their settings.
#include "app/main_window.h"
#include "app/search_runner.h"
#include "views/common/format.h"
#include "views/frontier/frontier_chart.h"
#include "views/scenario/method_settings.h"
#include "views/scenario/scenario_panel.h"

namespace turnpoint::app {

void MainWindow::connect_methods() {
  using Panel = views::ScenarioPanel;
  views::SplitWords words;
  for (const Method& method : backend_.methods()) {
    if (method.own_split)
      words.own = method.options;
    else if (!method.options.empty())
      words.methods[method.name] = method.options;
  }
  scenario_panel_->offer_splits(words);
  connect(scenario_panel_, &Panel::method_toggled, this,
          [this](const QString& name, bool on) { runner_->set_enabled(name.toStdString(), on); });
  connect(scenario_panel_, &Panel::split_added, this, &MainWindow::add_split);
  connect(scenario_panel_, &Panel::split_removed, this,
          [this](const QString& name) { runner_->remove_split(name.toStdString()); });
  connect(scenario_panel_, &Panel::settings_requested, this, &MainWindow::ask_method_settings);
  connect(scenario_panel_, &Panel::cancel_method_requested, this,
          [this](const QString& name) { runner_->cancel(name.toStdString()); });
  connect(scenario_panel_, &Panel::method_clicked, this,
          [this](const QString& name) { chart_->set_emphasised(name.toStdString()); });
}

void MainWindow::add_split(const QString& text) {
  const auto added = runner_->add_split(text.toStdString());
  scenario_panel_->show_split_message(added ? QString() : views::to_qt(added.error().what));
}

void MainWindow::ask_method_settings(const QString& name) {
  const Method* const splits = runner_->split_method();
  const QString of = !name.isEmpty() ? name.section(u':', 0, 0) : splits ? views::to_qt(splits->name) : QString();
  const QString parameters = name.section(u':', 1);
  for (const Method& method : backend_.methods()) {
    if (method.name != of.toStdString() || method.options.empty()) continue;
    views::MethodSettings* settings =
        scenario_panel_->show_method_settings(method.own_split ? tr("Split of your own") : views::to_qt(method.title),
                                              method.options, parameters, !parameters.isEmpty());
    connect(settings, &views::MethodSettings::accepted, this, [this, of, parameters, name](const QString& chosen) {
      if (chosen == parameters) return;
      add_split(of + u':' + chosen);
      if (!parameters.isEmpty()) runner_->remove_split(name.toStdString());
    });
  }
}

}  // namespace turnpoint::app
