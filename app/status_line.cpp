// SPDX-License-Identifier: Apache-2.0
#include "app/status_line.h"

#include <unistd.h>
#include <QAction>
#include <QLabel>
#include <QStatusBar>
#include <QTimer>
#include <fstream>

#include "app/actions.h"
#include "app/task_strip.h"
#include "app/workspace.h"
#include "core/scenario/task_scenario.h"
#include "core/search/placement_search.h"
#include "views/common/counted.h"
#include "views/common/elided_label.h"
#include "views/common/format.h"
#include "views/common/message_bar.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/frontier/chart_header.h"

namespace turnpoint::app {

namespace {

constexpr int kStatusEvery_ms = 1000;
constexpr int kWideStatus = 1300;  // below it the status bar leaves out what matters least

/// Resident bytes of this process; 0 where /proc is absent.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return file ? resident * sysconf(_SC_PAGESIZE) : 0;
}

/// The gap where people look, at the turning point; the largest one where there is none.
QString gap_shown(const Result& result) {
  const auto turning = result.turning_point ? gap_at(result, *result.turning_point) : std::nullopt;
  return views::gap_text(turning.value_or(*result.gap));
}

}  // namespace

StatusLine::StatusLine(Workspace& work, const ActionSet& actions, const views::MessageBar& messages,
                       views::ChartHeader& header, QStatusBar* bar)
    : QObject(bar), work_(work), actions_(actions), messages_(messages), header_(header), bar_(bar) {
  const auto label = [this](const char* name) {
    auto* made = new QLabel(bar_);
    made->setObjectName(QLatin1String(name));
    made->setFont(views::secondary_font(bar_->font()));
    made->setContentsMargins(6, 2, 6, 2);
    return made;
  };
  bar_->setSizeGripEnabled(false);
  state_label_ = label("status_state");
  QFont bold = state_label_->font();
  bold.setBold(true);
  state_label_->setFont(bold);
  // Gives way first: in a narrow window it ends in three dots, and its tip has the rest.
  figures_label_ = new views::Elided<QLabel>(bar_);
  figures_label_->setObjectName(QStringLiteral("status_figures"));
  figures_label_->setFont(views::secondary_font(bar_->font()));
  change_label_ = label("status_change");
  seed_label_ = label("status_seed");
  memory_label_ = label("status_memory");
  message_label_ = label("status_messages");
  auto* strip = new TaskStrip(work_.tasks, bar_);
  bar_->addWidget(state_label_);
  bar_->addWidget(figures_label_, 1);
  bar_->addPermanentWidget(strip);
  for (QLabel* part : {change_label_, memory_label_, seed_label_, message_label_}) bar_->addPermanentWidget(part);
  auto* timer = new QTimer(this);
  timer->setInterval(kStatusEvery_ms);
  connect(timer, &QTimer::timeout, this, &StatusLine::show);
  timer->start();
  connect(actions_[ActionId::tasks], &QAction::triggered, strip, &TaskStrip::show_list);
  connect(&work_.document, &Document::scenario_changed, this, &StatusLine::show);
  connect(&work_.document, &Document::building_changed, this, &StatusLine::show);
  connect(&work_.runner, &SearchRunner::runs_changed, this, &StatusLine::show);
  connect(&work_.clock, &SimulatedClock::changed, this, &StatusLine::show);
  connect(&work_.tasks, &TaskManager::changed, this, &StatusLine::show);
  connect(&messages_, &views::MessageBar::count_changed, this, &StatusLine::show);
  show();
}

void StatusLine::show_tip(const QString& tip) {
  tip_ = tip;
  figures_label_->setText(tip_.isEmpty() ? figures_ : tip_);
}

void StatusLine::show() {
  const MethodRun* main = work_.runner.subject();
  const ScenarioPtr& scenario = work_.document.scenario();
  const views::ThemeColors& colors = views::theme_colors(bar_->palette());
  QString state, figures, chart_state;
  QColor tint = colors.ok;
  const bool busy = main && main->state == MethodRun::State::running;
  if (!scenario) {
    state = work_.document.building() ? tr("Opening…") : tr("Nothing open");
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
      state = busy || !work_.runner.settled() ? tr("Computing") : tr("Out of date");
      tint = colors.warning;
      chart_state = busy || !work_.runner.settled() ? tr("computing") : tr("out of date");
    } else if (scenario->tasks) {
      const bool goes_on = search::has_not_ended(result);
      state = goes_on        ? tr("The best so far")
              : main->coarse ? tr("Placed before, simulated again")
                             : tr("Simulated exactly");
      if (goes_on)
        tint = colors.warning, chart_state = tr("the best so far");
      else if (main->coarse)
        tint = colors.warning, chart_state = tr("being placed again");
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
                    ? tr("along the curve")
                    : tr("at the turning point, at most %1 along the curve").arg(views::gap_text(*result.gap)));
    if (work_.clock.on() && !scenario->tasks) parts << tr("searched by plain sums");
    if (!scenario->tasks)
      parts << tr("%1 plans").arg(views::about_plans(views::distinct_plans(result.points)))
            << tr("%1 operators").arg(scenario->model->operators.size());
    figures = parts.join(QStringLiteral(" · "));
  }
  state_label_->setText(QStringLiteral("● ") + state);
  QPalette tinted = state_label_->palette();
  tinted.setColor(QPalette::WindowText, tint);
  state_label_->setPalette(tinted);
  figures_ = figures;
  figures_label_->setText(tip_.isEmpty() ? figures_ : tip_);
  figures_label_->setToolTip(figures_);
  header_.set_state(chart_state);
  const auto newest = work_.tasks.newest();
  header_.set_progress(newest ? newest->fraction : -1, newest.has_value());

  QStringList times;
  if (main && main->result) times << tr("search %1").arg(views::search_time_text(main->result->search_s));
  if (work_.runner.last_change_s() > 0)
    times << tr("last change %1").arg(views::search_time_text(work_.runner.last_change_s()));
  change_label_->setText(times.join(QStringLiteral(" · ")));
  if (const std::int64_t bytes = resident_bytes()) memory_label_->setText(views::memory_text(bytes));
  seed_label_->setText(scenario ? tr("seed %1").arg(scenario->settings.seed) : QString());
  // Half words would tell nothing: a narrow window keeps the state, the running task and the messages.
  for (QLabel* part : {change_label_, memory_label_, seed_label_})
    part->setVisible(bar_->window()->width() >= kWideStatus);
  message_label_->setText(messages_.count() == 1 ? tr("1 message") : tr("%1 messages").arg(messages_.count()));
  actions_[ActionId::stop_newest]->setEnabled(newest.has_value());
  actions_[ActionId::stop_all]->setEnabled(newest.has_value());
  actions_[ActionId::search_all]->setEnabled(scenario != nullptr);
}

}  // namespace turnpoint::app
