// SPDX-License-Identifier: Apache-2.0
#include "app/scenario_page.h"

#include <QAction>
#include <algorithm>

#include "app/actions.h"
#include "app/app_settings.h"
#include "app/chart_page.h"
#include "app/recent_name.h"
#include "app/workspace.h"
#include "core/scenario/task_scenario.h"
#include "core/search/registry.h"
#include "views/common/format.h"
#include "views/common/result_notes.h"
#include "views/frontier/frontier_chart.h"
#include "views/scenario/method_settings.h"
#include "views/scenario/scenario_panel.h"

namespace turnpoint::app {

ScenarioPage::ScenarioPage(Workspace& work, const ActionSet& actions, const AppSettings& settings, ChartPage& chart,
                           views::ScenarioPanel* panel)
    : QObject(panel), work_(work), settings_(settings), chart_(chart), panel_(panel) {
  using Panel = views::ScenarioPanel;
  Document* document = &work_.document;
  connect(panel_, &Panel::model_chosen, this, [=](const QString& s) { document->open_model(s.toStdString()); });
  connect(panel_, &Panel::hardware_chosen, this, [=](const QString& s) { document->open_hardware(s.toStdString()); });
  connect(panel_, &Panel::open_model_requested, actions[ActionId::open_model], &QAction::trigger);
  connect(panel_, &Panel::open_hardware_requested, actions[ActionId::open_hardware], &QAction::trigger);
  connect(panel_, &Panel::option_edited, this, [=](const QString& key, double value, quint64 gesture) {
    document->set_option(key.toStdString(), value, gesture);
  });
  connect(panel_, &Panel::reset_factors_requested, document, &Document::reset_factors);
  connect_methods();
  connect(document, &Document::scenario_changed, this, &ScenarioPage::show_scenario);
  connect(document, &Document::failed, this, &ScenarioPage::show_scenario);  // boxes go back to what is open
  connect(&work_.runner, &SearchRunner::runs_changed, this, &ScenarioPage::show_methods);
  connect(&work_.tasks, &TaskManager::changed, this, &ScenarioPage::show_methods);
  fill_choices();
  show_scenario();
}

void ScenarioPage::show_scenario() {
  const ScenarioState& state = work_.document.state();
  views::ScenarioView view;
  view.scenario = state.scenario;
  view.model_specification = views::to_qt(state.model);
  view.hardware_specification = views::to_qt(state.hardware);
  view.cluster_devices = state.cluster ? state.cluster->devices() : 0;
  if (state.hardware != kFileHardware) view.cluster = state.cluster;
  panel_->set_scenario(view);
  show_methods();
}

void ScenarioPage::connect_methods() {
  using Panel = views::ScenarioPanel;
  panel_->offer_splits(views::split_words(work_.backend.methods()));
  connect(panel_, &Panel::method_toggled, this,
          [this](const QString& name, bool on) { work_.runner.set_enabled(name.toStdString(), on); });
  connect(panel_, &Panel::split_added, this, &ScenarioPage::add_split);
  connect(panel_, &Panel::split_removed, this,
          [this](const QString& name) { work_.runner.remove_split(name.toStdString()); });
  connect(panel_, &Panel::settings_requested, this, &ScenarioPage::ask_method_settings);
  connect(panel_, &Panel::cancel_method_requested, this,
          [this](const QString& name) { work_.runner.cancel(name.toStdString()); });
  connect(panel_, &Panel::method_clicked, this,
          [this](const QString& name) { chart_.chart()->set_emphasised(name.toStdString()); });
}

void ScenarioPage::add_split(const QString& text) {
  const auto added = work_.runner.add_split(text.toStdString());
  panel_->show_split_message(added ? QString() : views::to_qt(added.error().what));
}

void ScenarioPage::ask_method_settings(const QString& name) {
  const Method* const splits = work_.runner.split_method();
  const QString of = !name.isEmpty() ? name.section(u':', 0, 0) : splits ? views::to_qt(splits->name) : QString();
  const QString parameters = name.section(u':', 1);
  for (const Method& method : work_.backend.methods()) {
    if (method.name != of.toStdString() || method.options.empty()) continue;
    const auto options_of = [this](std::string_view other) -> std::span<const OptionRecord> {
      for (const Method& one : work_.backend.methods())
        if (one.name == other) return one.options;
      return {};
    };
    views::MethodSettings* settings = panel_->show_method_settings(
        method.own_split ? tr("Split of your own") : views::to_qt(method.title), method.options, parameters,
        !parameters.isEmpty(), {method.other_method, options_of});
    connect(settings, &views::MethodSettings::accepted, this, [this, of, parameters, name](const QString& chosen) {
      if (chosen == parameters) return;
      add_split(of + u':' + chosen);
      if (!parameters.isEmpty()) work_.runner.remove_split(name.toStdString());
    });
  }
}

namespace {

/// Each choice that is not made at first, by itself, and each switch that is off.
std::vector<std::pair<QString, QString>> variants_of(const std::vector<OptionRecord>& options) {
  std::vector<std::pair<QString, QString>> variants;
  for (const OptionRecord& option : options) {
    const QString key = views::to_qt(option.key), text = views::to_qt(option.text);
    if (option.type == OptionType::flag && option.default_value == 0) variants.emplace_back(text, key);
    if (option.type != OptionType::choice) continue;
    for (std::size_t i = 0; i < option.choices.size(); ++i)
      if (double(i) != option.default_value)
        variants.emplace_back(text + QStringLiteral(": ") + views::to_qt(option.choices[i]),
                              key + u'=' + views::to_qt(option.choices[i]));
  }
  return variants;
}

}  // namespace

void ScenarioPage::show_methods() {
  std::vector<views::MethodRow> rows;
  using Shown = views::MethodRow::State;
  const auto tasks = work_.tasks.tasks();
  for (const MethodRun& run : work_.runner.runs()) {
    views::MethodRow row;
    row.name = views::to_qt(run.name);
    row.title = views::to_qt(run.title);
    row.frontier = run.method->frontier;
    row.has_settings = run.method->make_with && !run.method->options.empty();
    if (row.has_settings && !run.is_own()) row.variants = variants_of(run.method->options);
    row.enabled = run.enabled && run.refusal.empty();
    row.tool_tip = views::to_qt(described(*run.method)) +
                   (run.method->paper.empty() ? QString() : u'\n' + views::to_qt(run.method->paper));
    if (run.result && run.enabled) {
      row.notes = views::notes_text(*run.result);
      if (!run.result->explanations.empty())
        row.tool_tip = views::explanations_text(*run.result) + u'\n' + row.tool_tip;
    }
    const QString seconds = run.result ? views::search_time_text(run.result->search_s) : QString();
    if (!run.refusal.empty()) {
      row.state = Shown::refused, row.status = views::to_qt(run.refusal);
      row.tool_tip = views::to_qt(run.refusal) + u'\n' + row.tool_tip;
    } else if (!run.enabled) {
      row.state = Shown::off, row.status = tr("off");
    } else {
      switch (run.state) {
        case MethodRun::State::idle: row.state = Shown::waiting, row.status = seconds; break;
        case MethodRun::State::waiting: row.state = Shown::waiting, row.status = tr("waiting"); break;
        case MethodRun::State::running: {
          row.state = run.pass == SearchPass::coarse ? Shown::coarse : Shown::running;
          for (const TaskInfo& task : tasks)
            if (task.id == run.task || task.purpose == QStringLiteral("search:") + row.name)
              row.fraction = std::max(row.fraction, task.fraction);
          row.status = row.fraction >= 0 ? views::progress_text(row.fraction) : tr("searching");
          break;
        }
        case MethodRun::State::done: row.state = Shown::done, row.status = run.coarse ? tr("sketch") : seconds; break;
        case MethodRun::State::failed:
          row.state = Shown::failed, row.status = run.error ? views::to_qt(run.error->what) : tr("failed");
          break;
        case MethodRun::State::cancelled:
          row.state = Shown::cancelled, row.status = tr("cancelled");
          if (!run.nothing_kept.empty()) row.tool_tip = views::to_qt(run.nothing_kept) + u'\n' + row.tool_tip;
          break;
      }
    }
    // A tick would say that the method has answered to what is asked now.
    if (row.enabled && row.state == Shown::done && run.result && run.result->scenario != work_.document.scenario())
      row.state = Shown::waiting, row.status = tr("outdated");
    rows.push_back(std::move(row));
  }
  // Of a task graph most methods can say nothing: those that can come first.
  const ScenarioPtr& scenario = work_.document.scenario();
  if (scenario && scenario->tasks)
    std::stable_partition(rows.begin(), rows.end(),
                          [](const views::MethodRow& row) { return row.state != Shown::refused; });
  panel_->set_methods(std::move(rows));
}

void ScenarioPage::fill_choices() {
  std::vector<views::Choice> models, machines;
  for (const QString& recent : settings_.recent_models())
    if (!recent.startsWith(QStringLiteral("builtin:"))) models.push_back({recent_name(recent), recent, recent});
  for (const BuiltinModel& model : work_.backend.builtin_models())
    models.push_back({views::to_qt(model.name), QStringLiteral("builtin:") + views::to_qt(model.name),
                      views::to_qt(model.description)});
  machines.push_back({tr("This machine"), QStringLiteral("local"),
                      tr("As it was measured last; before that its CPU cores with assumed figures")});
  for (const QString& recent : settings_.recent_hardware())
    if (recent.contains(u'/')) machines.push_back({recent.section(u'/', -2), recent, recent});
  for (const PresetInfo& preset : work_.backend.hardware_presets())
    machines.push_back({views::to_qt(preset.title), views::to_qt(preset.name), views::to_qt(preset.note)});
  panel_->set_choices(std::move(models), std::move(machines));
}

}  // namespace turnpoint::app
