// SPDX-License-Identifier: Apache-2.0
#include "app/search_runner.h"

#include <algorithm>
#include <utility>

#include "app/document.h"
#include "app/task_manager.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {

/// The method whose parameters are splits of the user's own: a row for each of those, none for itself.
constexpr const char* kSplits = "manual";

/// Quick and comparable on every model; the rest waits for its check box.
bool runs_unasked(const std::string& name) {
  for (const char* known : {"ft", "data-parallel", "optcnn", "mesh-tensorflow", "tofu", "fsdp", "megatron"})
    if (name == known) return true;
  return false;
}

/// The same of task graphs.
bool places_unasked(const std::string& name) {
  for (const char* known : {"pardnn", "heft", "layered-expert", "single-device"})
    if (name == known) return true;
  return false;
}

/// Whether one scenario costs what the other does, to the last bit: a price changes no plan.
bool same_costs(const Scenario& a, const Scenario& b) {
  Settings settings = a.settings;
  settings.price_per_hour = b.settings.price_per_hour;
  return a.model == b.model && a.cluster == b.cluster && settings == b.settings;
}

QString purpose_of(const std::string& name) { return QStringLiteral("search:") + views::to_qt(name); }

}  // namespace

SearchRunner::SearchRunner(const SearchBackend& backend, TaskManager& tasks, Document& document, QObject* parent)
    : QObject(parent), backend_(backend), tasks_(tasks), document_(document) {
  for (const Method& method : backend.methods()) {
    if (method.name == kSplits) {
      splits_ = &method;
      continue;
    }
    MethodRun run;
    run.method = &method;
    run.name = method.name;
    run.title = method.title;
    run.enabled = runs_unasked(method.name);
    run.enabled_otherwise = method.places ? places_unasked(method.name) : run.enabled;
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
    exact_follows_ = true;
    start_coarse();
  });
  connect(&document, &Document::scenario_changed, this, &SearchRunner::scenario_changed);
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

bool SearchRunner::carry_over() {
  const ScenarioPtr& scenario = document_.scenario();
  const MethodRun* main = subject();
  if (!scenario || !settled() || !main || !main->result || main->coarse) return false;
  for (const MethodRun& run : runs_)
    if (run.enabled && run.refusal.empty() && (!run.result || !same_costs(*run.result->scenario, *scenario)))
      return false;
  for (MethodRun& run : runs_) {
    // What is refused here has at most an answer to something else.
    if (!run.enabled || !run.result || !run.refusal.empty()) continue;
    auto copy = std::make_shared<Result>(*run.result);
    copy->scenario = scenario;
    run.result = std::move(copy);
    emit result_changed(views::to_qt(run.name));
  }
  return true;
}

void SearchRunner::forget_other_model() {
  const ScenarioPtr& scenario = document_.scenario();
  if (!scenario || scenario->model == model_) return;
  model_ = scenario->model;
  std::vector<std::string> emptied;
  for (MethodRun& run : runs_) {
    if (run.result) emptied.push_back(run.name);
    run.result = nullptr;
    run.coarse = false;
    run.error.reset();
    if (run.state == MethodRun::State::running || run.state == MethodRun::State::waiting) continue;
    run.state = MethodRun::State::idle;
    run.task = 0;
  }
  for (const std::string& name : emptied) emit result_changed(views::to_qt(name));
}

void SearchRunner::scenario_changed(bool live) {
  change_kind();
  if (carry_over()) return;
  forget_other_model();
  edited_at_ = clock_.elapsed();
  for (const std::string& name : others_)
    if (MethodRun* run = find_mutable(name); run && run->state == MethodRun::State::waiting)
      run->state = MethodRun::State::idle;
  others_.clear();
  for (MethodRun& run : runs_)
    if (&run != subject_mutable() && run.state == MethodRun::State::running)
      tasks_.cancel_purpose(purpose_of(run.name));
  if (!document_.scenario()) {
    frame_.stop();
    moved_in_frame_ = false;
    rest_.stop();
    for (MethodRun& run : runs_) run.result = nullptr;
    emit runs_changed();
    return;
  }
  if (live) {
    exact_follows_ = false;
    rest_.start();
    // The first move of a frame is answered at once, the last one when the frame ends.
    if (frame_.isActive())
      moved_in_frame_ = true;
    else
      start_live();
    return;
  }
  refresh_refusals();
  frame_.stop();
  moved_in_frame_ = false;
  rest_.stop();
  exact_follows_ = true;
  start_coarse();
}

void SearchRunner::start_live() {
  frame_.start();
  start_coarse();
}

void SearchRunner::start_coarse() {
  MethodRun* run = subject_mutable();
  // The first placement of a large graph takes seconds, others' markers are there in a tenth of one.
  const bool alone =
      !run || (of_tasks_ && !(run->result && run->result->scenario->model == document_.scenario()->model));
  if (run)
    start(*run, SearchPass::coarse);
  else
    exact_follows_ = false;
  if (alone) start_others();
}

void SearchRunner::start_exact() {
  exact_follows_ = false;
  if (MethodRun* run = subject_mutable())
    start(*run, SearchPass::exact);
  else
    start_others();
}

void SearchRunner::search_all() {
  if (!document_.scenario()) return;
  for (MethodRun& run : runs_)
    if (run.enabled && &run != subject_mutable()) run.result = nullptr;
  edited_at_ = clock_.elapsed();
  start_exact();
  start_others();
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
  if (!document_.scenario() || frame_.isActive() || rest_.isActive()) return;
  const MethodRun* main = subject_mutable();
  bool running = false;
  others_.clear();
  for (MethodRun& run : runs_) {
    if (&run == main) continue;
    running = running || run.state == MethodRun::State::running;
    const bool current = run.result && run.result->scenario == document_.scenario();
    const bool gave_up =
        (run.state == MethodRun::State::failed || run.state == MethodRun::State::cancelled) && run.task;
    if (!run.enabled || !run.refusal.empty() || current || gave_up || run.state == MethodRun::State::running) continue;
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
  *id = run.task = tasks_.start(
      purpose_of(name), views::to_qt(run.title),
      [searcher = searchers_[index], scenario = document_.scenario(), pass, answer](const RunContext& context) {
        answer->emplace(searcher->run(scenario, pass, context));
      },
      [this, name, id, pass, answer, edited = edited_at_](TaskOutcome outcome) {
        ended(name, *id, pass, *answer, outcome, edited);
      },
      short_pass ? Preempt::let_it_finish : Preempt::stop_running);
  emit runs_changed();
}

void SearchRunner::ended(const std::string& name, quint64 task, SearchPass pass,
                         const std::optional<Expected<ResultPtr>>& answer, TaskOutcome outcome, qint64 edited_at) {
  MethodRun* const found = find_mutable(name);
  if (!found) return;  // a split that was taken out while it ran
  MethodRun& run = *found;
  const bool newest = run.task == task;
  // What memory ran out under is half made: the next search begins afresh.
  if (outcome == TaskOutcome::failed) searchers_[static_cast<std::size_t>(&run - runs_.data())].reset();
  // One that ran has made room for the waiting one; one that was replaced while it waited changes nothing.
  if (!newest && answer) run.pass = run.newest_pass;
  const bool usable = outcome == TaskOutcome::finished && answer && answer->has_value() && **answer;
  if (usable && document_.scenario() && (**answer)->scenario &&
      (**answer)->scenario->model == document_.scenario()->model) {
    run.result = **answer;
    run.coarse = pass == SearchPass::coarse && !run.result->exact;
    run.error.reset();
    if (pass == SearchPass::coarse || last_change_s_ == 0)
      last_change_s_ = static_cast<double>(clock_.elapsed() - edited_at) / 1e3;
  }
  if (newest) {
    const bool stopped = outcome != TaskOutcome::finished ||
                         (answer && !answer->has_value() && answer->error().code == ErrorCode::cancelled);
    run.state = usable ? MethodRun::State::done : stopped ? MethodRun::State::cancelled : MethodRun::State::failed;
    if (run.state == MethodRun::State::failed && answer) {
      run.error = answer->error();
      emit failed(*run.error, views::to_qt(run.title));
    }
  }
  if (usable) emit result_changed(views::to_qt(name));
  if (newest) {
    const bool main = &run == subject_mutable();
    if (main && exact_follows_ && run.state == MethodRun::State::done) {
      exact_follows_ = false;
      if (run.coarse) start_exact();
      start_others();
    } else if (!frame_.isActive() && !rest_.isActive() && !exact_follows_) {
      start_others();
    }
  }
  emit runs_changed();
  check_settled();
}

void SearchRunner::set_enabled(const std::string& name, bool on) {
  MethodRun* run = find_mutable(name);
  if (!run || run->enabled == on) return;
  const MethodRun* before = subject_mutable();
  run->enabled = on;
  if (!on) {
    tasks_.cancel_purpose(purpose_of(name));
    if (run->state == MethodRun::State::waiting) run->state = MethodRun::State::idle;
  } else {
    run->task = 0;
    run->state = MethodRun::State::idle;
  }
  emit result_changed(views::to_qt(name));
  if (document_.scenario()) {
    MethodRun* main = subject_mutable();
    const bool needs_search =
        main && main != before && (!main->result || main->result->scenario != document_.scenario());
    if (needs_search) {
      exact_follows_ = true;
      start_coarse();
    } else {
      start_others();
    }
  }
  emit runs_changed();
}

Expected<void> SearchRunner::add_split(const std::string& parameters, bool enabled) {
  if (!splits_) return usage_error("there is no method for splits of one's own");
  const auto searcher = make_searcher(*splits_, parameters);
  if (!searcher) return searcher.error();
  MethodRun run;
  run.method = splits_;
  run.parameters = parameters;
  run.name = std::string(kSplits) + ":" + parameters;
  run.title = parameters;
  std::replace(run.title.begin(), run.title.end(), ':', ' ');
  if (find(run.name)) {
    set_enabled(run.name, enabled);
    return {};
  }
  run.enabled = enabled;
  runs_.push_back(std::move(run));
  searchers_.emplace_back();
  refresh_refusals();
  start_others();
  emit runs_changed();
  return {};
}

void SearchRunner::remove_split(const std::string& name) {
  const MethodRun* run = find(name);
  if (!run || run->method != splits_) return;
  tasks_.cancel_purpose(purpose_of(name));
  std::erase(others_, name);
  const auto index = run - runs_.data();
  runs_.erase(runs_.begin() + index);
  searchers_.erase(searchers_.begin() + index);
  emit result_changed(views::to_qt(name));
  emit runs_changed();
  check_settled();
}

std::vector<std::string> SearchRunner::splits() const {
  std::vector<std::string> list;
  for (const MethodRun& run : runs_)
    if (run.method == splits_) list.push_back(run.parameters);
  return list;
}

void SearchRunner::set_enabled_methods(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (splits_ && name.starts_with(std::string(kSplits) + ":") && !find(name))
      (void)add_split(name.substr(name.find(':') + 1));  // one that means nothing is left out
  for (MethodRun& run : runs_) {
    run.enabled = std::find(names.begin(), names.end(), run.name) != names.end();
    if (run.enabled) continue;
    tasks_.cancel_purpose(purpose_of(run.name));
    if (run.state == MethodRun::State::waiting) run.state = MethodRun::State::idle;
    std::erase(others_, run.name);
  }
  if (document_.scenario()) {
    // What was on before may have been searching; what is on now has to begin by itself.
    const MethodRun* main = subject_mutable();
    if (!main) {
      exact_follows_ = false;
      start_others();
    } else if (main->state != MethodRun::State::running &&
               (!main->result || main->result->scenario != document_.scenario())) {
      exact_follows_ = true;
      start_coarse();
    }
  }
  emit runs_changed();
}

void SearchRunner::cancel(const std::string& name) {
  exact_follows_ = false;
  tasks_.cancel_purpose(purpose_of(name));
}

void SearchRunner::stop_all() {
  frame_.stop();
  moved_in_frame_ = false;
  rest_.stop();
  exact_follows_ = false;
  for (const std::string& name : others_)
    if (MethodRun* run = find_mutable(name)) run->state = MethodRun::State::idle;
  others_.clear();
  for (const MethodRun& run : runs_) tasks_.cancel_purpose(purpose_of(run.name));
  emit runs_changed();
}

bool SearchRunner::settled() const {
  if (frame_.isActive() || rest_.isActive() || exact_follows_ || !others_.empty()) return false;
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
  if (settled()) emit became_settled();
}

}  // namespace turnpoint::app
