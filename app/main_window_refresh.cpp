// SPDX-License-Identifier: Apache-2.0
// From the state of document and searches to what the window shows.
#include <unistd.h>
#include <QAction>
#include <QLabel>
#include <QMenu>
#include <QStackedWidget>
#include <QWidget>
#include <algorithm>
#include <fstream>

#include "app/app_settings.h"
#include "app/document.h"
#include "app/fit_judge.h"
#include "app/graph_tab.h"
#include "app/main_window.h"
#include "app/plan_loader.h"
#include "app/recent_name.h"
#include "app/scenario_words.h"
#include "app/schedule_loader.h"
#include "app/search_runner.h"
#include "app/simulated_clock.h"
#include "app/start_page.h"
#include "app/task_manager.h"
#include "core/scenario/task_scenario.h"
#include "core/search/registry.h"
#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/common/message_bar.h"
#include "views/common/result_notes.h"
#include "views/common/theme_colors.h"
#include "views/comparison/comparison_view.h"
#include "views/frontier/chart_header.h"
#include "views/frontier/frontier_chart.h"
#include "views/memory/memory_summary.h"
#include "views/memory/memory_view.h"
#include "views/plan/plan_panel.h"
#include "views/scenario/scenario_panel.h"
#include "views/timeline/timeline_view.h"

namespace turnpoint::app {

namespace {

/// Resident bytes of this process; 0 where /proc is absent.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return file ? resident * sysconf(_SC_PAGESIZE) : 0;
}

constexpr int kWideStatus = 1300;  // below it the status bar leaves out what matters least

/// Whether the devices of a task graph's own file have different memories.
bool devices_differ(const Scenario& scenario) {
  if (scenario.hardware != kFileHardware) return false;
  for (int d = 1; d < scenario.cluster->devices(); ++d)
    if (scenario.tasks->memory_of(std::uint32_t(d)) != scenario.tasks->memory_of(0)) return true;
  return false;
}

/// The gap where people look, at the turning point; the largest one where there is none.
QString gap_shown(const Result& result) {
  const auto turning = result.turning_point ? gap_at(result, *result.turning_point) : std::nullopt;
  return views::gap_text(turning.value_or(*result.gap));
}

}  // namespace

QString MainWindow::batch_words(const Scenario& scenario) { return tr("batch %1").arg(scenario.model->batch); }

void MainWindow::show_scenario() {
  const ScenarioState& state = document_->state();
  centre_->setCurrentIndex(state.scenario ? 1 : 0);
  views::ScenarioView view;
  view.scenario = state.scenario;
  view.model_specification = views::to_qt(state.model);
  view.hardware_specification = views::to_qt(state.hardware);
  view.cluster_devices = state.cluster ? state.cluster->devices() : 0;
  if (state.hardware != kFileHardware) view.cluster = state.cluster;
  scenario_panel_->set_scenario(view);
  const ModelPtr model = state.scenario ? state.scenario->model : nullptr;
  if (model != shown_model_) {
    const bool other = !model || !shown_model_ || model->name != shown_model_->name;
    shown_model_ = model;
    document_->selection().pick_operators({});
    for (const LinkedView& linked : linked_) {
      linked.set_plan(nullptr, nullptr);  // a plan of the old model must never meet the new one
      linked.set_model(state.scenario);
    }
    plan_panel_->set_plan(nullptr, nullptr);
    if (!model) show_point();
    if (other) chart_->fit();
    remember_opened();
  }
  show_title();
  show_chart();
  show_methods();
  show_status();
}

void MainWindow::show_chart() {
  views::ChartData chart_data;
  const ScenarioPtr& scenario = document_->scenario();
  for (const MethodRun& run : runner_->runs()) {
    if (!run.enabled || !run.result || !scenario || run.result->scenario->model != scenario->model) continue;
    views::ChartSeries series{run.name, views::to_qt(run.label()),
                              run.method->frontier, run.coarse, judge_->judged(run)};
    if (clock_->on() && run.result->clock == Clock::additive) {
      const SimulatedClock::Curve* curve = clock_->find(run.name);
      if (!curve) continue;  // plain sums would stand among simulated figures
      series.result = curve->drawn;
      if (run.method->frontier) series.line = curve->line;
    }
    if (run.result->scenario != scenario) {
      series.of = words_of_other(*run.result->scenario, *scenario);
      if (series.of.isEmpty()) series.of = tr("the scenario before");
      // A sketch of the line is on its way within a frame; without one the old line is as old as the rest.
      series.stale = &run != runner_->subject() || run.state == MethodRun::State::cancelled ||
                     run.state == MethodRun::State::failed;
    }
    chart_data.series.push_back(std::move(series));
  }
  // Pinned frontiers of models are plain sums: among simulated figures they would compare what cannot be compared.
  const bool moved = clock_->on() && !(scenario && scenario->tasks);
  if (!moved) chart_data.pinned = document_->pinned_here();
  // What a pinned frontier shares with the one on show is not what it is told apart by.
  if (scenario && !scenario->tasks) {
    const QString same = batch_words(*scenario);
    for (views::PinnedFrontier& pinned : chart_data.pinned)
      if (pinned.label.endsWith(QStringLiteral(", ") + same)) pinned.label.chop(same.size() + 2);
  }
  if (scenario) {
    chart_data.title = tr("%1 on %2").arg(views::to_qt(scenario->model->name), views::to_qt(scenario->cluster->title));
    chart_data.memory_limit = scenario->memory_limit() == kUnlimitedBytes ? 0 : scenario->memory_limit();
    if (scenario->tasks && scenario->settings.memory_limit == 0 && devices_differ(*scenario)) {
      chart_data.own_limits = true;
      chart_data.memory_limit = 0;
    }
    if (scenario->tasks || clock_->on()) chart_data.clock = Clock::simulated;
    if (scenario->hardware != kFileHardware) chart_data.device = views::to_qt(scenario->cluster->device.name);
  }
  const views::ChartSeries* subject = chart_data.subject();
  if (moved && subject && subject->line) chart_data.envelope = views::lower_left(chart_data);
  QString subtitle;
  if (subject && !subject->frontier)
    subtitle = tr("%1 of %2 on %3")
                   .arg(views::counted(double(chart_data.series.size()), tr("1 placement"), tr("%1 placements")),
                        views::counted(double(scenario->tasks->task_count()), tr("1 task"), tr("%1 tasks")),
                        views::counted(double(scenario->cluster->devices()), tr("1 device"), tr("%1 devices")));
  else if (subject && subject->line)
    subtitle = tr("%1 plans simulated · the line: %2")
                   .arg(std::count_if(subject->result->points.begin(), subject->result->points.end(), views::drawable))
                   .arg(chart_data.envelope_words());
  else if (subject)
    subtitle = tr("%1 different plans · lower left is better")
                   .arg(views::about_plans(views::distinct_plans(subject->result->points)));
  header_->set_subtitle(subtitle);
  actions_[ActionId::simulated_clock]->setEnabled(!scenario || !scenario->tasks);
  actions_[ActionId::simulated_clock]->setToolTip(scenario && scenario->tasks
                                                      ? tr("Placements of a task graph are always simulated")
                                                      : actions_[ActionId::simulated_clock]->statusTip());
  QAction* pinned = actions_[ActionId::show_pinned];
  pinned->setText(chart_data.pinned.empty() ? tr("Pinned") : tr("Pinned %1").arg(chart_data.pinned.size()));
  pinned->setEnabled(!chart_data.pinned.empty());
  actions_[ActionId::clear_pinned]->setEnabled(!document_->pinned_here().empty());
  show_result_exports(subject != nullptr);
  actions_.allow(ActionId::pin, subject ? QString() : tr("There is no result yet."));
  actions_.allow(ActionId::close_model, scenario ? QString() : tr("Nothing is open."));
  if (moved) actions_.allow(ActionId::pin, tr("Pinned frontiers are plain sums: switch the simulated clock off."));
  comparison_view_->set_data(chart_data);
  chart_->set_data(std::move(chart_data));
}

void MainWindow::show_methods() {
  std::vector<views::MethodRow> rows;
  using Shown = views::MethodRow::State;
  const auto tasks = tasks_->tasks();
  for (const MethodRun& run : runner_->runs()) {
    views::MethodRow row;
    row.name = views::to_qt(run.name);
    row.title = views::to_qt(run.title);
    row.frontier = run.method->frontier;
    row.has_settings = run.method->make_with && !run.method->options.empty();
    row.enabled = run.enabled && run.refusal.empty();
    row.tool_tip = views::to_qt(described(*run.method)) +
                   (run.method->paper.empty() ? QString() : u'\n' + views::to_qt(run.method->paper));
    if (run.result && run.enabled) row.notes = views::notes_text(*run.result);
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
          row.status = row.fraction >= 0 ? views::share_text(row.fraction) : tr("searching");
          break;
        }
        case MethodRun::State::done: row.state = Shown::done, row.status = run.coarse ? tr("sketch") : seconds; break;
        case MethodRun::State::failed:
          row.state = Shown::failed, row.status = run.error ? views::to_qt(run.error->what) : tr("failed");
          break;
        case MethodRun::State::cancelled: row.state = Shown::cancelled, row.status = tr("cancelled"); break;
      }
    }
    // A tick would say that the method has answered to what is asked now.
    if (row.enabled && row.state == Shown::done && run.result && run.result->scenario != document_->scenario())
      row.state = Shown::waiting, row.status = tr("outdated");
    rows.push_back(std::move(row));
  }
  // Of a task graph most methods can say nothing: those that can come first.
  const ScenarioPtr& scenario = document_->scenario();
  if (scenario && scenario->tasks)
    std::stable_partition(rows.begin(), rows.end(),
                          [](const views::MethodRow& row) { return row.state != Shown::refused; });
  scenario_panel_->set_methods(std::move(rows));
}

void MainWindow::show_point() {
  const auto& picked = document_->selection().point();
  const MethodRun* run = picked_run();
  const bool there = run != nullptr;
  // On the simulated clock the panel says what the chart shows, as soon as the chart can.
  const SimulatedClock::Curve* curve = there && clock_->on() ? clock_->find(run->name) : nullptr;
  const bool simulated = curve && curve->of == run->result && views::drawable(curve->drawn->points[picked->index]);
  plan_panel_->set_point(!there      ? nullptr
                         : simulated ? curve->drawn
                                     : judge_->judged(*run),
                         there ? picked->index : 0,
                         there ? views::to_qt(run->label()) : QString(),
                         there && run->coarse);
  show_plan_exports();
  show_peak();
}

const MethodRun* MainWindow::picked_run() const {
  const auto& picked = document_->selection().point();
  const MethodRun* run = picked && document_->scenario() ? runner_->find(picked->method) : nullptr;
  return run && run->enabled && run->result && picked->index < run->result->points.size() ? run : nullptr;
}

/// Never that of another plan than the one whose figures stand above it.
void MainWindow::show_peak() {
  const bool known = loader_->up_to_date() && schedules_->is_of(loader_->plan());
  const std::int64_t peak = known ? schedules_->loaded().memory->largest_peak() : 0;
  plan_panel_->set_peak(peak > 0 ? std::optional(peak) : std::nullopt);
}

void MainWindow::show_plan() {
  const PlanPtr plan = loader_->plan();
  const ScenarioPtr scenario = loader_->result() ? loader_->result()->scenario : nullptr;
  const PlacementPlanPtr placement = loader_->placement();
  if ((plan || placement) && (!scenario || scenario->model != shown_model_)) return;
  if (placement) {
    plan_panel_->set_placement(placement, scenario);
    tabs_.graph->expect_placement();
  } else {
    plan_panel_->set_plan(plan, scenario);
  }
  // Hidden tabs wait until they are looked at: while a slider moves there is no time for what nobody sees.
  for (std::size_t i = 0; i < linked_.size(); ++i) {
    linked_[i].outdated = !linked_[i].widget->isVisible();
    if (!linked_[i].outdated) show_plan_in(linked_[i]);
  }
  show_plan_exports();
  show_peak();
}

void MainWindow::show_plan_in(LinkedView& view) {
  view.outdated = false;
  view.set_plan(loader_->plan(), loader_->result() ? loader_->result()->scenario : nullptr);
}

void MainWindow::show_schedule() {
  const LoadedSchedule& loaded = schedules_->loaded();
  tabs_.timeline->set_message(schedules_->message());
  tabs_.memory->set_message(schedules_->message());
  tabs_.timeline->set_prepared(loaded.timeline);
  tabs_.memory->set_prepared(loaded.memory);
  tabs_.graph->set_placement_schedule(loaded.of_placement ? loaded.schedule : nullptr);
  show_peak();
}

void MainWindow::show_status() {
  const MethodRun* main = runner_->subject();
  const ScenarioPtr& scenario = document_->scenario();
  const views::ThemeColors& colors = views::theme_colors(palette());
  QString state, figures, chart_state;
  QColor tint = colors.ok;
  const bool busy = main && main->state == MethodRun::State::running;
  if (!scenario) {
    state = document_->building() ? tr("Opening…") : tr("Nothing open");
    tint = colors.secondary;
  } else if (!main) {
    state = scenario->tasks ? tr("No placement method is checked") : tr("No frontier method is checked");
    tint = colors.secondary;
  } else if (!main->result) {
    state = busy ? tr("Computing") : tr("No result");
    tint = colors.warning;
    chart_state = state;
  } else {
    const Result& result = *main->result;
    const bool current = result.scenario == scenario;
    if (!current) {
      state = busy || !runner_->settled() ? tr("Computing") : tr("Out of date");
      tint = colors.warning;
      chart_state = busy || !runner_->settled() ? tr("computing") : tr("out of date");
    } else if (scenario->tasks) {
      state = main->coarse ? tr("Placed before, simulated again") : tr("Simulated exactly");
      if (main->coarse) tint = colors.warning, chart_state = tr("being placed again");
    } else if (main->coarse) {
      // What is certified of a sketch is shown to who hovers over it; at rest the exact curve takes its place.
      state = tr("Sketch");
      tint = colors.warning;
      chart_state = tr("sketch");
    } else if (result.exact) {
      state = tr("Exact");
    } else {
      state = result.gap ? tr("Gap %1").arg(gap_shown(result)) : tr("Not certified");
    }
    QStringList parts;
    if (scenario->tasks)
      parts << views::counted(double(scenario->tasks->task_count()), tr("1 task"), tr("%1 tasks"))
            << views::counted(double(scenario->tasks->edge_count()), tr("1 edge"), tr("%1 edges"));
    else if (result.exact)
      parts << tr("gap 0");
    else if (result.gap && result.turning_point && !main->coarse)
      parts << (*result.gap < views::kLeastGap
                    ? tr("anywhere")
                    : tr("at the turning point, at most %1 anywhere").arg(views::gap_text(*result.gap)));
    if (clock_->on() && !scenario->tasks) parts << tr("searched by plain sums");
    if (!scenario->tasks)
      parts << tr("%1 plans").arg(views::about_plans(views::distinct_plans(result.points)))
            << tr("%1 operators").arg(scenario->model->operators.size());
    figures = parts.join(QStringLiteral(" · "));
  }
  plan_panel_->set_empty_text(!scenario               ? tr("Open a model to see its plans.")
                              : busy && !main->result ? tr("Searching: the first plans are not there yet.")
                                                      : tr("Pick a point in the chart to see its plan."));
  state_label_->setText(QStringLiteral("● ") + state);
  QPalette tinted = state_label_->palette();
  tinted.setColor(QPalette::WindowText, tint);
  state_label_->setPalette(tinted);
  figures_ = figures;
  figures_label_->setText(tip_.isEmpty() ? figures_ : tip_);
  figures_label_->setToolTip(figures_);
  header_->set_state(chart_state);
  const auto newest = tasks_->newest();
  header_->set_progress(newest ? newest->fraction : -1, newest.has_value());

  QStringList times;
  if (main && main->result) times << tr("search %1").arg(views::search_time_text(main->result->search_s));
  if (runner_->last_change_s() > 0)
    times << tr("last change %1").arg(views::search_time_text(runner_->last_change_s()));
  change_label_->setText(times.join(QStringLiteral(" · ")));
  if (const std::int64_t bytes = resident_bytes()) memory_label_->setText(views::memory_text(bytes));
  seed_label_->setText(scenario ? tr("seed %1").arg(scenario->settings.seed) : QString());
  // Half words would tell nothing: a narrow window keeps the state, the running task and the messages.
  for (QLabel* part : {change_label_, memory_label_, seed_label_}) part->setVisible(width() >= kWideStatus);
  message_label_->setText(messages_->count() == 1 ? tr("1 message") : tr("%1 messages").arg(messages_->count()));
  actions_[ActionId::stop_newest]->setEnabled(newest.has_value());
  actions_[ActionId::stop_all]->setEnabled(newest.has_value());
  actions_[ActionId::search_all]->setEnabled(scenario != nullptr);
}

void MainWindow::show_recent() {
  recent_menu_->clear();
  QStringList all = settings_.recent_sessions() + settings_.recent_models();
  for (const QString& path : all) recent_menu_->addAction(path, this, [this, path] { open_path(path); });
  recent_menu_->setEnabled(!all.isEmpty());
  start_page_->set_recent(all);
}

void MainWindow::fill_choices() {
  std::vector<views::Choice> models, machines;
  for (const QString& recent : settings_.recent_models())
    if (!recent.startsWith(QStringLiteral("builtin:"))) models.push_back({recent_name(recent), recent, recent});
  for (const BuiltinModel& model : backend_.builtin_models())
    models.push_back({views::to_qt(model.name), QStringLiteral("builtin:") + views::to_qt(model.name),
                      views::to_qt(model.description)});
  machines.push_back({tr("This machine"), QStringLiteral("local"),
                      tr("As it was measured last; before that its CPU cores with assumed figures")});
  for (const QString& recent : settings_.recent_hardware())
    if (recent.contains(u'/')) machines.push_back({recent.section(u'/', -2), recent, recent});
  for (const PresetInfo& preset : backend_.hardware_presets())
    machines.push_back({views::to_qt(preset.title), views::to_qt(preset.name), views::to_qt(preset.note)});
  scenario_panel_->set_choices(std::move(models), std::move(machines));
  show_recent();
}

}  // namespace turnpoint::app
