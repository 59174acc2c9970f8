// SPDX-License-Identifier: Apache-2.0
// Searches that show something while they run, which is on show until they end; and what runs while nothing else does.
#include <algorithm>
#include <utility>

#include "app/document.h"
#include "app/live_answer.h"
#include "app/search_runner.h"
#include "app/task_manager.h"
#include "core/search/placement_search.h"
#include "views/common/format.h"

namespace turnpoint::app {

void SearchRunner::follow_live() {
  std::vector<std::string> changed;
  for (MethodRun& run : runs_)
    if (run.state == MethodRun::State::running && run.live && take_live(run)) changed.push_back(run.name);
  announce(changed);
}

bool SearchRunner::take_live(MethodRun& run) {
  const auto newest = run.live->newest();
  if (!newest) return false;
  run.learning = newest->learning;
  run.learnt_for = run.asked;
  emit learning_changed(views::to_qt(run.name));
  const ResultPtr& so_far = newest->so_far;
  if (!so_far || so_far == run.so_far || run.asked != run.question) return false;
  run.so_far = so_far;
  // A whole answer stays until a whole one replaces it.
  const bool whole = is_current(run) && !run.coarse && !run.carried && !search::stopped_early(*run.result);
  if (whole) return false;
  run.result = answer_of(so_far, document_.scenario());
  run.coarse = true;
  run.carried = false;
  run.error.reset();
  return true;
}

void SearchRunner::offer_learning(const std::vector<SavedLearning>& saved) {
  offered_.clear();
  for (const SavedLearning& one : saved) offered_[one.method] = {one.state, false};
  offered_for_next_ = true;
}

void SearchRunner::forget_learning() {
  if (!std::exchange(offered_for_next_, false)) offered_.clear();
  for (MethodRun& run : runs_) {
    run.learning = nullptr;
    run.so_far = nullptr;
    run.live = nullptr;
    emit learning_changed(views::to_qt(run.name));
  }
}

std::vector<SavedLearning> SearchRunner::learning() const {
  std::vector<SavedLearning> saved;
  for (const MethodRun& run : runs_) {
    if (!run.enabled) continue;
    const auto offered = offered_.find(run.name);
    auto state = run.learning && run.learnt_for == run.question ? run.learning->state() : nullptr;
    // Where none has come of it, what the session had is still there.
    if (!state && offered != offered_.end()) state = offered->second.state;
    if (state) saved.push_back({run.name, std::move(state)});
  }
  return saved;
}

std::shared_ptr<const std::string> SearchRunner::state_to_go_on_from(const MethodRun& run) {
  const auto offered = offered_.find(run.name);
  if (offered != offered_.end() && !std::exchange(offered->second.taken, true)) return offered->second.state;
  const bool stopped =
      run.learning && run.learnt_for == run.question && is_current(run) && search::stopped_early(*run.result);
  return stopped ? run.learning->state() : nullptr;
}

void SearchRunner::get_ready() {
  const MethodRun* const main = subject_mutable();
  if (getting_ready_ != 0 || tasks_.busy() || !settled() || !up_to_date()) return;
  if (!main || !main->method->frontier || !main->result || main->carried) return;
  const ScenarioPtr scenario = document_.scenario();
  const std::shared_ptr<Searcher> searcher = searchers_[static_cast<std::size_t>(main - runs_.data())];
  if (!searcher || (ready_.searcher.lock() == searcher && ready_.scenario == scenario)) return;
  ready_ = {searcher, scenario};
  made_way_ = false;
  auto id = std::make_shared<quint64>(0);
  // Of the search's own purpose: the next search waits until the searcher is free.
  *id = getting_ready_ = tasks_.start(
      search_purpose(main->name), tr("Getting sliders ready"),
      [searcher, scenario](const RunContext& context) {
        RunContext quiet = context;
        quiet.progress = {};
        (void)searcher->get_ready(scenario, quiet);  // cancelled: moves are coarser
      },
      [this, id, searcher](TaskOutcome outcome) {
        if (getting_ready_ != *id) return;
        getting_ready_ = 0;
        if (outcome == TaskOutcome::superseded || made_way_) ready_ = {};  // it goes on when there is time
        // What memory ran out under is half made: the next search begins afresh.
        if (outcome != TaskOutcome::failed) return;
        for (auto& each : searchers_)
          if (each == searcher) each.reset();
      });
}

void SearchRunner::make_way() {
  if (getting_ready_ == 0 || made_way_ || tasks_.tasks().size() < 2) return;
  made_way_ = true;
  tasks_.cancel(getting_ready_);
}

}  // namespace turnpoint::app
