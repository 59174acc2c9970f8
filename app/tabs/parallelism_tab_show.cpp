// SPDX-License-Identifier: Apache-2.0
// What the Parallelism tab draws, and how its searches go.
#include <algorithm>

#include "app/tabs/parallelism_tab.h"
#include "views/common/format.h"
#include "views/parallelism/parallelism_chart.h"

namespace turnpoint::app {

void ParallelismTab::show() {
  if (!looked_at_) return;
  views::ParallelismData data;
  const ScenarioPtr& scenario = work_.document.scenario();
  if (!scenario) {
    data.nothing = tr("Open a model to see how its time falls, and its price changes, with more devices");
    view_->set_price(0, false);
    view_->set_ranges({}, 0);
    view_->set_data(std::move(data));
    show_state();
    return;
  }
  data.counts = counts();
  data.devices = scenario->cluster->devices();
  data.batch = scenario->model->batch;
  data.device = views::to_qt(scenario->cluster->device.name);
  data.memory_limit = scenario->memory_limit();
  data.price_per_hour = scenario->price_per_hour();
  data.largest_batch = of_batches();
  bool known = false;
  for (const MethodRun& run : work_.runner.runs()) {
    if (!run.enabled) continue;
    views::ParallelismLine line{run.name, views::to_qt(run.label()), {}};
    for (const int devices : data.counts) {
      line.points.push_back(of_batches() ? batch_point({run.name, devices}) : time_point({run.name, devices}));
      const auto state = line.points.back().state;
      known = known || state == views::ParallelismPoint::State::fits ||
              state == views::ParallelismPoint::State::does_not_fit;
    }
    data.lines.push_back(std::move(line));
  }
  if (data.lines.empty())
    data.nothing = tr("No method is checked; check one in the list of methods");
  else if (!known)
    data.nothing = nothing_words(data.counts);
  std::vector<int> ranges;
  const int own = work_.document.state().cluster->devices();
  if (!work_.document.state().cluster->mixed())
    for (int most = own; most <= std::max(own, std::min(kMostDevices, own * 8)); most *= 2)
      if (with_devices(work_.document.state().cluster, most)) ranges.push_back(most);
  if (std::find(ranges.begin(), ranges.end(), data.counts.back()) == ranges.end()) ranges.push_back(data.counts.back());
  std::sort(ranges.begin(), ranges.end());
  view_->set_ranges(ranges, data.counts.back());
  view_->set_price(data.price_per_hour.value_or(0), scenario->settings.price_per_hour > 0);
  view_->set_data(std::move(data));
  show_state();
}

void ParallelismTab::show_state() {
  views::ParallelismState state;
  if (batches_.running() || running_) {
    state.running = true;
    if (batches_.running()) state.fraction = batches_.fraction();
    for (const TaskInfo& task : work_.tasks.tasks())
      if (running_ && task.purpose == kPlansPurpose) state.fraction = task.fraction;
  } else if (work_.document.scenario()) {
    const Error* failed = failure();
    const bool stopped = of_batches() ? batches_.stopped() : stopped_;
    const bool early = !of_batches() && std::any_of(answers_.begin(), answers_.end(),
                                                    [](const auto& one) { return one.second.stopped; });
    const bool complete = of_batches() ? batches_.complete(checked(), counts()) : missing().empty();
    state.failed = failed != nullptr;
    state.can_resume = failed || early || (stopped && !complete);
    if (failed)
      state.words = views::to_qt(failed->what);
    else if (stopped || early)
      state.words = tr("stopped");
    else if (!complete)
      state.words = tr("waits for the chart");
  }
  view_->set_state(state);
}

QJsonObject ParallelismTab::save_state() const {
  QJsonObject state = view_->save_state();
  state[QStringLiteral("most")] = most_;
  return state;
}

void ParallelismTab::restore_state(const QJsonObject& state) {
  view_->restore_state(state);
  const int most = state[QStringLiteral("most")].toInt();
  most_ = work_.document.scenario() && most > 0 && most <= kMostDevices ? most : 0;
  show();
  start_if_due();
}

}  // namespace turnpoint::app
