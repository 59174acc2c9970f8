// SPDX-License-Identifier: Apache-2.0
#include "app/search_runner.h"

#include <algorithm>
#include <utility>

#include "app/document.h"
#include "app/task_manager.h"
#include "core/search/placement_search.h"
#include "views/common/format.h"

namespace turnpoint::app {

SearchRunner::SearchRunner(const SearchBackend& backend, TaskManager& tasks, Document& document, QObject* parent)
    : QObject(parent),
      backend_(backend),
      tasks_(tasks),
      document_(document),
      figures_(std::make_shared<FiguresStore>()) {
  for (const Method& method : backend.methods()) {
    if (method.own_split) {
      splits_ = &method;
      continue;
    }
    MethodRun run;
    run.method = &method;
    run.name = method.name;
    run.title = method.title;
    // Quick and comparable on every model, or of task graphs; the rest waits for its check box.
    run.enabled = method.on_by_default && !method.places;
    run.enabled_otherwise = method.on_by_default;
    runs_.push_back(std::move(run));
  }
  searchers_.resize(runs_.size());
  clock_.start();
  frame_.setSingleShot(true);
  frame_.setInterval(kFrame_ms);
  rest_.setSingleShot(true);
  rest_.setInterval(kRest_ms);
  connect(&frame_, &QTimer::timeout, this, [this] {
    if (std::exchange(moved_in_frame_, false)) start_live();
  });
  // Asked for again at the same costs, the coarse curve is refined within a few frames; the exact one follows.
  connect(&rest_, &QTimer::timeout, this, [this] {
    frame_.stop();
    moved_in_frame_ = false;
    refresh_refusals();
    const MethodRun* main = subject();
    const bool refined = main && main->state == MethodRun::State::running && main->asked == main->question &&
                         main->newest_pass == SearchPass::exact;
    sketch_due_ = main && needs_search(*main) && !refined;
    advance();
    emit runs_changed();
    check_settled();
  });
  connect(&document, &Document::scenario_changed, this, &SearchRunner::scenario_changed);
  connect(&tasks, &TaskManager::changed, this, &SearchRunner::follow_live);
  connect(&tasks, &TaskManager::changed, this, &SearchRunner::make_way);
  connect(&tasks, &TaskManager::idle, this, &SearchRunner::get_ready);
}

const MethodRun* SearchRunner::find(const std::string& name) const {
  return const_cast<SearchRunner*>(this)->find_mutable(name);
}
const MethodRun* SearchRunner::subject() const { return const_cast<SearchRunner*>(this)->subject_mutable(); }

MethodRun* SearchRunner::find_mutable(const std::string& name) {
  for (MethodRun& run : runs_)
    if (run.name == name) return &run;
  return nullptr;
}

MethodRun* SearchRunner::subject_mutable() {
  for (MethodRun& run : runs_)
    if (run.enabled && (of_tasks_ ? run.method->places : run.method->frontier) && run.refusal.empty()) return &run;
  return nullptr;
}

void SearchRunner::change_kind() {
  const bool tasks = document_.scenario() && document_.scenario()->tasks;
  if (!document_.scenario() || tasks == of_tasks_) return;
  of_tasks_ = tasks;
  for (MethodRun& run : runs_)
    if (run.method->places) std::swap(run.enabled, run.enabled_otherwise);
  refresh_refusals();
}

void SearchRunner::refresh_refusals() {
  for (MethodRun& run : runs_)
    run.refusal = document_.scenario() ? refusal_of(*run.method, run.parameters, *document_.scenario()) : std::string();
}

bool SearchRunner::is_current(const MethodRun& run) const {
  return run.result && document_.scenario() && run.result->scenario == document_.scenario();
}

bool SearchRunner::needs_search(const MethodRun& run) const {
  if (!document_.scenario() || !run.enabled || !run.refusal.empty()) return false;
  if (run.again) return true;
  const bool stopped = run.state == MethodRun::State::failed || run.state == MethodRun::State::cancelled;
  return !(stopped && run.stopped_for == document_.scenario()) && (!is_current(run) || run.coarse || run.carried);
}

void SearchRunner::withdraw(MethodRun& run) {
  // Its answer, should there still be one, is that of nobody's newest task.
  if (run.state == MethodRun::State::running) tasks_.cancel_purpose(search_purpose(run.name));
  if (run.state == MethodRun::State::running || run.state == MethodRun::State::waiting)
    run.state = MethodRun::State::idle;
  run.task = 0;
  run.asked.clear();
  std::erase(others_, run.name);
}

void SearchRunner::ask_questions() {
  const ScenarioState& state = document_.state();
  for (MethodRun& run : runs_)
    run.question = state.scenario ? question_of(*run.method, run.parameters, *state.scenario, state.content) : "";
}

std::vector<std::string> SearchRunner::take_kept(bool figures) {
  std::vector<std::string> changed;
  const ScenarioPtr& scenario = document_.scenario();
  if (!scenario) return changed;
  for (MethodRun& run : runs_) {
    if (!run.enabled || !run.refusal.empty() || run.again) continue;
    const bool shown = is_current(run) && !run.coarse;
    if (shown && !run.carried) continue;
    const ResultPtr kept = kept_.find(run.question);
    if (!kept) {
      const ResultPtr known = shown || !figures ? nullptr : figures_->find(run.question);
      if (!known) continue;
      run.result = answer_of(known, scenario);
      run.coarse = false;
      run.carried = true;
      changed.push_back(run.name);
      continue;
    }
    if (run.state == MethodRun::State::running) tasks_.cancel_purpose(search_purpose(run.name));
    run.task = 0;
    run.asked.clear();
    std::erase(others_, run.name);
    run.result = answer_of(kept, scenario);
    run.coarse = leaves_open(*kept, *run.result);
    run.carried = false;
    run.error.reset();
    run.state = run.coarse ? MethodRun::State::idle : MethodRun::State::done;
    changed.push_back(run.name);
  }
  return changed;
}

void SearchRunner::announce(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    more_follow_ = i + 1 < names.size();
    emit result_changed(views::to_qt(names[i]));
  }
}

void SearchRunner::forget_other_model() {
  const ScenarioPtr& scenario = document_.scenario();
  if (!scenario || scenario->model == model_) return;
  model_ = scenario->model;
  if (scenario->model->source != source_ || offered_for_next_) forget_learning();
  std::vector<std::string> emptied;
  for (MethodRun& run : runs_) {
    if (run.result) emptied.push_back(run.name);
    withdraw(run);
    run.result = nullptr;
    run.coarse = run.carried = false;
    run.state = MethodRun::State::idle;
  }
  if (scenario->model->source != source_) {
    const std::string before = std::exchange(source_, scenario->model->source);
    kept_.forget_unless(
        [&](const Scenario& one) { return one.model->source == before || one.model->source == source_; });
    for (auto& searcher : searchers_) searcher.reset();  // a task that still runs holds its own
  }
  announce(emptied);
}

void SearchRunner::scenario_changed(bool live) {
  change_kind();
  ask_questions();
  forget_other_model();
  edited_at_ = clock_.elapsed();
  const ScenarioPtr& scenario = document_.scenario();
  if (!scenario) {
    frame_.stop();
    moved_in_frame_ = false;
    rest_.stop();
    for (MethodRun& run : runs_) {
      withdraw(run);
      run.result = nullptr;
    }
    emit runs_changed();
    return check_settled();
  }
  if (!live) refresh_refusals();
  const MethodRun* const main = subject_mutable();
  for (MethodRun& run : runs_) {
    if (run.asked == run.question && run.state == MethodRun::State::running) continue;  // answers this one as well
    run.again = false;
    const bool stopped = run.state == MethodRun::State::failed || run.state == MethodRun::State::cancelled;
    if (stopped && run.stopped_for != scenario) {
      run.state = MethodRun::State::idle;
      run.error.reset();
    }
    // The subject's task gives way by itself, a sketch only once it is there: that keeps a dragged curve moving.
    if (&run != main) withdraw(run);
  }
  announce(take_kept(!live));  // under the hand a sketch is better, which has plans
  const bool searching = main && main->asked == main->question && main->state == MethodRun::State::running;
  sketch_due_ = main && !searching && needs_search(*main) && !(is_current(*main) && !main->coarse);
  if (live) {
    rest_.start();
    // The first move of a frame is answered at once, the last one when the frame ends.
    if (frame_.isActive())
      moved_in_frame_ = true;
    else
      start_live();
  } else {
    frame_.stop();
    moved_in_frame_ = false;
    rest_.stop();
    advance();
  }
  emit runs_changed();
  check_settled();
}

void SearchRunner::start_live() {
  frame_.start();
  MethodRun* const main = subject_mutable();
  if (main && sketch_due_ && needs_search(*main)) start(*main, SearchPass::coarse);
}

void SearchRunner::advance() {
  if (!document_.scenario() || hand_moves()) return;
  for (MethodRun& run : runs_)
    if (run.state == MethodRun::State::idle && run.enabled && run.refusal.empty() && !needs_search(run))
      run.state = MethodRun::State::done;
  MethodRun* const main = subject_mutable();
  if (main && needs_search(*main)) {
    const bool searching = main->state == MethodRun::State::running && main->asked == main->question;
    const bool sketch = std::exchange(sketch_due_, false);
    if (sketch || !searching) start(*main, sketch ? SearchPass::coarse : SearchPass::exact);
  }
  start_others();
}

void SearchRunner::search_all() {
  if (!document_.scenario()) return;
  std::vector<std::string> emptied;
  for (MethodRun& run : runs_) {
    if (!run.enabled || !run.refusal.empty()) continue;
    withdraw(run);
    run.again = true;
    run.error.reset();
    if (&run == subject_mutable() || !run.result) continue;
    run.result = nullptr;
    emptied.push_back(run.name);
  }
  announce(emptied);
  frame_.stop();
  rest_.stop();
  moved_in_frame_ = sketch_due_ = false;
  edited_at_ = clock_.elapsed();
  advance();
}

void SearchRunner::search(const std::string& name) {
  MethodRun* run = find_mutable(name);
  if (!run || !document_.scenario() || !run->refusal.empty()) return;
  run->enabled = true;
  edited_at_ = clock_.elapsed();
  start(*run, SearchPass::exact);
}

void SearchRunner::start_others() {
  // Methods share the machine's cores, so one after another is as fast and leaves the window responsive; beside the
  // exact pass, though, which may take long, since most of them answer within a second.
  const MethodRun* main = subject_mutable();
  const bool sketching = main && needs_search(*main) && main->newest_pass == SearchPass::coarse &&
                         main->state == MethodRun::State::running;
  // The first placement of a large graph takes seconds, others' markers are there in a tenth of one.
  if (sketching && !(of_tasks_ && !main->result)) return;
  bool running = false;
  others_.clear();
  for (MethodRun& run : runs_) {
    if (&run == main) continue;
    running = running || run.state == MethodRun::State::running;
    if (!needs_search(run) || run.state == MethodRun::State::running) continue;
    run.state = MethodRun::State::waiting;
    others_.push_back(run.name);
  }
  if (running || others_.empty()) return;
  const std::string next = others_.front();
  others_.pop_front();
  if (MethodRun* run = find_mutable(next)) start(*run, SearchPass::exact);
}

void SearchRunner::start(MethodRun& run, SearchPass pass) {
  const auto index = static_cast<std::size_t>(&run - runs_.data());
  if (!searchers_[index]) searchers_[index] = std::move(*make_searcher(*run.method, run.parameters));
  // A coarse pass is short: letting it finish keeps a dragged curve moving. An exact one yields to anything newer.
  const bool short_pass = run.state == MethodRun::State::running && run.pass == SearchPass::coarse;
  (pass == SearchPass::coarse ? coarse_started_ : exact_started_)++;
  auto answer = std::make_shared<std::optional<Expected<ResultPtr>>>();
  const std::string name = run.name;
  auto id = std::make_shared<quint64>(0);
  if (run.state != MethodRun::State::running) run.pass = pass;
  run.newest_pass = pass;
  run.state = MethodRun::State::running;
  run.asked = run.question;
  run.stopped_for = nullptr;
  run.nothing_kept.clear();
  run.again = false;
  run.live = std::make_shared<LiveAnswer>();
  const auto resumed = state_to_go_on_from(run);
  // Until it has a state of its own, this one is what a session keeps.
  if (resumed) offered_[run.name] = {resumed, true};
  const ScenarioPtr asked_of = document_.scenario();
  *id = run.task = tasks_.start(
      search_purpose(name), views::to_qt(run.title),
      [searcher = searchers_[index], asked_of, pass, answer, figures = figures_, resumed, live = run.live,
       question = run.question](const RunContext& context) {
        if (resumed) searcher->resume(resumed);
        RunContext watched = context;
        watched.progress = [&context, &live](const Progress& progress) {
          if (auto shown = std::dynamic_pointer_cast<const search::LiveSearch>(progress.detail)) live->set(shown);
          context.progress(progress);
        };
        answer->emplace(searcher->run(asked_of, pass, watched));
        if (**answer && pass == SearchPass::exact && !context.cancelled()) figures->keep(question, ***answer);
      },
      [this, name, id, pass, asked = run.asked, asked_of, answer, edited = edited_at_](TaskOutcome outcome) {
        ended(name, *id, pass, asked, asked_of, *answer, outcome, edited);
      },
      short_pass ? Preempt::let_it_finish : Preempt::stop_running);
  emit runs_changed();
}

bool SearchRunner::take(MethodRun& run, const ResultPtr& answer, SearchPass pass, const std::string& asked) {
  const bool coarse = pass == SearchPass::coarse && !answer->exact;
  if (!coarse) kept_.keep(asked, answer);
  const ScenarioPtr& scenario = document_.scenario();
  if (!scenario || !answer->scenario) return false;
  const bool current = asked == run.question;
  if (!current && (answer->scenario->model != scenario->model || is_current(run))) return false;
  if (current && coarse && is_current(run) && !run.coarse) return false;
  run.result = current ? answer_of(answer, scenario) : answer;
  run.coarse = coarse || leaves_open(*answer, *run.result);
  run.carried = false;
  run.error.reset();
  return true;
}

void SearchRunner::ended(const std::string& name, quint64 task, SearchPass pass, const std::string& asked,
                         const ScenarioPtr& scenario, const std::optional<Expected<ResultPtr>>& answer,
                         TaskOutcome outcome, qint64 edited_at) {
  MethodRun* const found = find_mutable(name);
  if (!found) return;  // a split that was taken out while it ran
  MethodRun& run = *found;
  const bool newest = run.task == task;
  if (newest && run.live) (void)take_live(run);
  // What memory ran out under is half made: the next search begins afresh.
  if (outcome == TaskOutcome::failed) searchers_[static_cast<std::size_t>(&run - runs_.data())].reset();
  // One that ran has made room for the waiting one; one that was replaced while it waited changes nothing.
  if (!newest && answer) run.pass = run.newest_pass;
  const bool usable = outcome == TaskOutcome::finished && answer && answer->has_value() && **answer;
  const bool taken = usable && take(run, **answer, pass, asked);
  if (taken && (pass == SearchPass::coarse || last_change_s_ == 0))
    last_change_s_ = static_cast<double>(clock_.elapsed() - edited_at) / 1e3;
  // What the user stopped may have the best so far. It is no answer to its question, which is not to be had at once
  // then.
  const bool best_so_far = outcome == TaskOutcome::cancelled && newest && answer && answer->has_value() &&
                           search::stopped_early(***answer) && asked == run.question;
  if (best_so_far) {
    run.result = answer_of(**answer, document_.scenario());
    run.coarse = run.carried = false;
    run.error.reset();
  }
  if (newest) {
    const bool stopped = outcome != TaskOutcome::finished ||
                         (answer && !answer->has_value() && answer->error().code == ErrorCode::cancelled);
    run.state = usable ? MethodRun::State::done : stopped ? MethodRun::State::cancelled : MethodRun::State::failed;
    run.task = 0;
    run.asked.clear();
    if (run.state == MethodRun::State::cancelled && answer && !answer->has_value() && answer->error().nothing_kept)
      run.nothing_kept = answer->error().what;
    if (!usable) {
      // Whatever the scenario became meanwhile, it is another one that may well be searched.
      run.stopped_for = asked == run.question ? document_.scenario() : scenario;
      if (run.stopped_for != document_.scenario()) run.state = MethodRun::State::idle;
    }
    if (run.state == MethodRun::State::failed && answer) {
      run.error = answer->error();
      emit failed(*run.error, views::to_qt(run.title));
    }
  }
  // What is shown of one that was stopped is no longer about to be replaced.
  if (taken || (newest && !usable)) emit result_changed(views::to_qt(name));
  if (newest) advance();
  emit runs_changed();
  check_settled();
}

void SearchRunner::cancel(const std::string& name) {
  MethodRun* const run = find_mutable(name);
  if (!run) return;
  if (run->state == MethodRun::State::waiting) {
    run->state = MethodRun::State::cancelled;
    run->stopped_for = document_.scenario();
    std::erase(others_, name);
    emit runs_changed();
    return check_settled();
  }
  tasks_.cancel_purpose(search_purpose(name));
}

void SearchRunner::stop_all() {
  frame_.stop();
  moved_in_frame_ = sketch_due_ = false;
  rest_.stop();
  others_.clear();
  std::vector<std::string> stopped;
  for (MethodRun& run : runs_) {
    if (run.state == MethodRun::State::running) {
      tasks_.cancel_purpose(search_purpose(run.name));
    } else if (needs_search(run)) {
      run.state = MethodRun::State::cancelled;
      run.stopped_for = document_.scenario();
      stopped.push_back(run.name);
    }
    run.again = false;
  }
  announce(stopped);
  emit runs_changed();
  check_settled();
}

void SearchRunner::offer(const std::vector<CarriedAnswer>& answers) {
  for (const CarriedAnswer& answer : answers)
    if (answer.result) figures_->lend(answer.question, answer.result);
}

void SearchRunner::keep_figures_in(const QString& folder) { figures_ = std::make_shared<FiguresStore>(folder); }

std::vector<CarriedAnswer> SearchRunner::answers() const {
  std::vector<CarriedAnswer> answers;
  for (const MethodRun& run : runs_)
    if (run.enabled && is_current(run) && !run.coarse && can_be_carried(*run.result))
      answers.push_back({run.question, run.result});
  return answers;
}

bool SearchRunner::settled() const {
  if (hand_moves() || !others_.empty()) return false;
  return std::none_of(runs_.begin(), runs_.end(), [](const MethodRun& run) {
    return run.state == MethodRun::State::running || run.state == MethodRun::State::waiting;
  });
}

bool SearchRunner::up_to_date() const {
  const auto answered = [&](const MethodRun& run) {
    return run.result && run.result->scenario == document_.scenario() && !run.coarse;
  };
  if (const MethodRun* main = subject()) return answered(*main);
  // Without a curve there are markers only, of methods that answer or say why not.
  return document_.scenario() && std::all_of(runs_.begin(), runs_.end(), [&](const MethodRun& run) {
           return !run.enabled || !run.refusal.empty() || run.error || answered(run);
         });
}

void SearchRunner::check_settled() {
  if (!settled()) return;
  emit became_settled();
  get_ready();
}

}  // namespace turnpoint::app
