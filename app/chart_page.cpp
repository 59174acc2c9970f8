// SPDX-License-Identifier: Apache-2.0
#include "app/chart_page.h"

#include <QAction>
#include <QVBoxLayout>
#include <algorithm>

#include "app/actions.h"
#include "app/app_settings.h"
#include "app/scenario_words.h"
#include "app/workspace.h"
#include "core/scenario/task_scenario.h"
#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/frontier/chart_header.h"
#include "views/frontier/frontier_chart.h"

namespace turnpoint::app {

namespace {

bool is_on_at_first(ActionId id) { return id != ActionId::log_time && id != ActionId::simulated_clock; }

QString batch_words(const Scenario& scenario) { return ChartPage::tr("batch %1").arg(scenario.model->batch); }

/// Whether the devices of a task graph's own file have different memories.
bool devices_differ(const Scenario& scenario) {
  if (scenario.hardware != kFileHardware) return false;
  for (int d = 1; d < scenario.cluster->devices(); ++d)
    if (scenario.tasks->memory_of(std::uint32_t(d)) != scenario.tasks->memory_of(0)) return true;
  return false;
}

}  // namespace

const ActionId ChartPage::kToggles[] = {ActionId::show_parts, ActionId::show_others, ActionId::show_pinned,
                                        ActionId::log_time, ActionId::simulated_clock};

ChartPage::ChartPage(Workspace& work, const ActionSet& actions, AppSettings& settings, QWidget* parent)
    : QWidget(parent),
      work_(work),
      actions_(actions),
      settings_(settings),
      header_(new views::ChartHeader(this)),
      chart_(new views::FrontierChart(this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  chart_->set_selection(&work_.document.selection());
  column->addWidget(header_);
  column->addWidget(chart_, 1);
  connect_actions();
  connect(chart_, &views::FrontierChart::memory_limit_dragged, &work_.document, &Document::set_memory_limit);
  Document* document = &work_.document;
  connect(document, &Document::model_changed, this, [this, before = std::string()]() mutable {
    const ScenarioPtr& scenario = work_.document.scenario();
    if (!scenario || scenario->model->name != before) chart_->fit();
    before = scenario ? scenario->model->name : std::string();
  });
  connect(document, &Document::scenario_changed, this, &ChartPage::show_results);
  connect(document, &Document::pinned_changed, this, &ChartPage::show_results);
  connect(&work_.runner, &SearchRunner::result_changed, this, [this] {
    if (!work_.runner.more_follow()) show_results();
  });
  connect(&work_.clock, &SimulatedClock::changed, this, &ChartPage::show_results);
  connect(&work_.judge, &FitJudge::judged_changed, this, &ChartPage::show_results);
}

void ChartPage::connect_actions() {
  using Id = ActionId;
  QList<QAction*> toggles;
  for (const Id id : kToggles) {
    actions_[id]->setChecked(settings_.shown(actions_[id]->objectName(), is_on_at_first(id)));
    toggles << actions_[id];
  }
  header_->set_actions(actions_[Id::fit_chart], toggles);
  const auto on = [this](Id id, auto call) { connect(actions_[id], &QAction::triggered, this, call); };
  using Stride = views::FrontierChart::Stride;
  on(Id::copy_point, [this] { chart_->copy_point(); });
  on(Id::pin, [this] { pin(); });
  on(Id::clear_pinned, [this] {
    work_.pinned_searches.set({});
    work_.document.clear_pinned();
  });
  on(Id::fit_chart, [this] { chart_->fit(); });
  on(Id::zoom_in, [this] { chart_->zoom(1.25); });
  on(Id::zoom_out, [this] { chart_->zoom(0.8); });
  on(Id::previous_plan, [this] { chart_->step_pick(-1); });
  on(Id::next_plan, [this] { chart_->step_pick(1); });
  on(Id::previous_point, [this] { chart_->step_pick(-1, Stride::every); });
  on(Id::next_point, [this] { chart_->step_pick(1, Stride::every); });
  on(Id::least_memory, [this] { chart_->pick_first(); });
  on(Id::least_time, [this] { chart_->pick_last(); });
  on(Id::turning_point, [this] { chart_->pick_turning_point(); });
  const auto toggle = [this](Id id, auto setter) {
    connect(actions_[id], &QAction::toggled, this, [this, id, setter](bool shown) {
      (chart_->*setter)(shown);
      settings_.set_shown(actions_[id]->objectName(), shown);
    });
    (chart_->*setter)(actions_[id]->isChecked());
  };
  toggle(Id::show_parts, &views::FrontierChart::set_parts_visible);
  toggle(Id::show_others, &views::FrontierChart::set_others_visible);
  toggle(Id::show_pinned, &views::FrontierChart::set_pinned_visible);
  toggle(Id::log_time, &views::FrontierChart::set_log_time);
  connect(actions_[Id::simulated_clock], &QAction::toggled, this, [this](bool simulated) {
    settings_.set_shown(actions_[Id::simulated_clock]->objectName(), simulated);
    work_.clock.set_on(simulated);
    chart_->fit();  // everything has moved
  });
  work_.clock.set_on(actions_[Id::simulated_clock]->isChecked());
}

views::ChartData ChartPage::data_now() const {
  views::ChartData chart_data;
  const ScenarioPtr& scenario = work_.document.scenario();
  for (const MethodRun& run : work_.runner.runs()) {
    if (!run.enabled || !run.result || !scenario || run.result->scenario->model != scenario->model) continue;
    views::ChartSeries series{run.name, views::to_qt(run.label()), run.method->frontier, run.coarse,
                              work_.judge.judged(run)};
    if (work_.clock.on() && run.result->clock == Clock::additive) {
      const SimulatedClock::Curve* curve = work_.clock.find(run.name);
      if (!curve) continue;  // plain sums would stand among simulated figures
      series.result = curve->drawn;
      if (run.method->frontier) series.line = curve->line;
    }
    if (run.result->scenario != scenario) {
      series.of = words_of_other(*run.result->scenario, *scenario);
      if (series.of.isEmpty()) series.of = tr("the scenario before");
      // A sketch of the line is on its way within a frame; without one the old line is as old as the rest.
      series.stale = &run != work_.runner.subject() || run.state == MethodRun::State::cancelled ||
                     run.state == MethodRun::State::failed;
    }
    chart_data.series.push_back(std::move(series));
  }
  // Pinned frontiers of models are plain sums: among simulated figures they would compare what cannot be compared.
  const bool moved = work_.clock.on() && !(scenario && scenario->tasks);
  if (!moved) chart_data.pinned = work_.document.pinned_here();
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
    if (scenario->tasks || work_.clock.on()) chart_data.clock = Clock::simulated;
    if (scenario->hardware != kFileHardware) chart_data.device = views::to_qt(scenario->cluster->device.name);
  }
  const views::ChartSeries* subject = chart_data.subject();
  if (moved && subject && subject->line) chart_data.envelope = views::lower_left(chart_data);
  return chart_data;
}

QString ChartPage::subtitle_of(const views::ChartData& results) const {
  const views::ChartSeries* subject = results.subject();
  const ScenarioPtr& scenario = work_.document.scenario();
  if (!subject) return {};
  const auto& points = subject->result->points;
  if (scenario->tasks) {
    std::size_t placements = 0;
    for (const views::ChartSeries& series : results.series)
      if (series.result) placements += series.result->points.size();
    return tr("%1 of %2 on %3")
        .arg(views::counted(double(placements), tr("1 placement"), tr("%1 placements")),
             views::counted(double(scenario->tasks->task_count()), tr("1 task"), tr("%1 tasks")),
             views::counted(double(scenario->cluster->devices()), tr("1 device"), tr("%1 devices")));
  }
  if (subject->line)
    return tr("%1 plans simulated · the line: %2")
        .arg(std::count_if(points.begin(), points.end(), views::drawable))
        .arg(results.envelope_words());
  return tr("%1 different plans · lower left is better").arg(views::about_plans(views::distinct_plans(points)));
}

void ChartPage::show_results() {
  views::ChartData results = data_now();
  const views::ChartSeries* subject = results.subject();
  const ScenarioPtr& scenario = work_.document.scenario();
  header_->set_subtitle(subtitle_of(results));
  QAction* simulated = actions_[ActionId::simulated_clock];
  const bool always = scenario && scenario->tasks;
  simulated->setEnabled(!always);
  simulated->setToolTip(always ? tr("Placements of a task graph are always simulated") : simulated->statusTip());
  QAction* pinned = actions_[ActionId::show_pinned];
  pinned->setText(results.pinned.empty() ? tr("Pinned") : tr("Pinned %1").arg(results.pinned.size()));
  pinned->setEnabled(!results.pinned.empty());
  actions_[ActionId::clear_pinned]->setEnabled(!work_.document.pinned_here().empty());
  const QString none = subject ? QString() : tr("There is no result yet.");
  for (const ActionId id : {ActionId::export_chart_png, ActionId::export_chart_svg, ActionId::export_chart_pdf})
    actions_.allow(id, none);
  const bool moved = work_.clock.on() && !always;
  actions_.allow(ActionId::pin, moved ? tr("Pinned frontiers are plain sums: switch the simulated clock off.") : none);
  emit changed(results);
  chart_->set_data(std::move(results));
}

void ChartPage::keep_clear(int height) { chart_->keep_clear(height); }

bool ChartPage::save(const QString& path) const {
  const auto ends = [&](const char* suffix) { return path.endsWith(QLatin1String(suffix), Qt::CaseInsensitive); };
  return ends(".svg") ? chart_->save_svg(path) : ends(".pdf") ? chart_->save_pdf(path) : chart_->save_png(path);
}

void ChartPage::pin() {
  const MethodRun* run = work_.runner.subject();
  if (!run || !run->result) return;
  const Result& result = *run->result;
  QStringList differs;
  for (const OptionRecord& option : scenario_options()) {
    const double value = get_option(result.scenario->settings, option.key);
    if (option.key.ends_with("-scale") && value != 1)
      differs << views::to_qt(option.text) + u' ' + views::factor_text(value);
  }
  if (differs.isEmpty()) differs << views::to_qt(result.scenario->cluster->title);
  if (!result.scenario->tasks) differs << batch_words(*result.scenario);
  // Other models have pinned frontiers of their own, which come and go with them.
  const std::string& model = result.scenario->model->name;
  differs.prepend(views::to_qt(model));
  work_.document.pin({differs.join(QStringLiteral(", ")), result.method, result.points, model, run->result});
  actions_[ActionId::show_pinned]->setChecked(true);
}

}  // namespace turnpoint::app
