// SPDX-License-Identifier: Apache-2.0
// Searches that show something while they run: what they have so far is on show until they end.
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

}  // namespace turnpoint::app
