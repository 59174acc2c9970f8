// SPDX-License-Identifier: Apache-2.0
#include "app/tabs/parallelism_tab.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "app/file_path.h"
#include "app/voice.h"
#include "core/base/json.h"
#include "core/schedule/fitting.h"
#include "core/search/fitting_batch.h"
#include "core/search/largest_batch.h"
#include "core/search/placement_search.h"
#include "views/common/format.h"
#include "views/common/toggle_button.h"
#include "views/parallelism/parallelism_chart.h"

namespace turnpoint::app {

namespace {

QString joined(const std::vector<int>& counts) {
  QStringList words;
  for (const int count : counts) words << QString::number(count);
  return words.join(QStringLiteral(", "));
}

}  // namespace

const QString ParallelismTab::kPlansPurpose = QStringLiteral("parallelism");

/// Where a worker leaves its answers while it goes on.
struct ParallelismTab::Mailbox {
  std::mutex mutex;
  std::vector<std::pair<Key, Answer>> found;
};

ParallelismTab::ParallelismTab(const TabParts& parts)
    : ViewTab(parts, "parallelism", tr("Parallelism"), new views::ParallelismView(parts.window)),
      batches_(work_.tasks, this) {
  using View = views::ParallelismView;
  connect(&work_.document, &Document::scenario_changed, this, &ParallelismTab::scenario_changed);
  connect(&work_.runner, &SearchRunner::result_changed, this, &ParallelismTab::follow_runner);
  connect(&work_.runner, &SearchRunner::runs_changed, this, &ParallelismTab::follow_runner);
  connect(&work_.judge, &FitJudge::judged_changed, this, &ParallelismTab::follow_runner);
  connect(&work_.runner, &SearchRunner::became_settled, this, &ParallelismTab::start_if_due);
  connect(&work_.tasks, &TaskManager::changed, this, [this] {
    if (looked_at_) show_state();
  });
  connect(view_, &View::price_edited, this,
          [this](double price) { work_.document.set_option("price-per-hour", price, 0); });
  connect(view_, &View::devices_requested, this,
          [this](int devices) { work_.document.set_option("devices", devices, 0); });
  connect(view_, &View::batch_requested, this,
          [this](int devices, std::int64_t batch) { work_.document.set_devices_and_batch(devices, batch); });
  connect(view_, &View::largest_batch_chosen, this, &ParallelismTab::largest_batch_chosen);
  connect(&batches_, &LargestBatchLines::changed, this, [this] {
    show();
    start_if_due();
  });
  connect(view_, &View::range_chosen, this, [this](int most) {
    most_ = most;
    stopped_ = false;
    batches_.leave();
    batches_.forget_errors();
    show();
    start_if_due();
  });
  connect(view_, &View::stop_requested, this, [this] {
    work_.tasks.cancel_purpose(kPlansPurpose);
    batches_.stop();
  });
  connect(view_, &View::resume_requested, this, [this] {
    stopped_ = false;
    batches_.forget_errors();
    search_stopped_again();
    start_if_due();
  });
  connect(view_, &View::export_requested, this, [this](const QString& suffix) {
    voice_.ask_save(tr("Export parallelism"), QStringLiteral("parallelism.") + suffix, filter_of(suffix),
                    [this](const QString& path) { export_to(path); });
  });
  show();
}

bool ParallelismTab::export_to(const QString& path) {
  const views::ParallelismChart* chart = view_->chart();
  const bool done =
      path.endsWith(QStringLiteral(".svg"), Qt::CaseInsensitive)
          ? chart->save_svg(path)
          : write_file_atomically(to_path(path), views::parallelism_csv(chart->data()).toStdString()).has_value();
  voice_.tell_written(done, path, tr("Export parallelism"));
  return done;
}

ParallelismTab::Subject ParallelismTab::subject() const {
  const ScenarioState& state = work_.document.state();
  if (!state.scenario) return {};
  Subject subject{state.source, state.scenario->model->batch, state.scenario->model->sequence, state.cluster,
                  state.scenario->settings};
  subject.settings.devices = 0;
  subject.settings.price_per_hour = 0;
  return subject;
}

std::vector<int> ParallelismTab::counts() const {
  const ScenarioState& state = work_.document.state();
  if (!state.scenario) return {};
  const int own = state.scenario->cluster->devices();
  ClusterPtr whole = state.cluster;
  const int most = most_ > 0 ? most_ : std::max(own, whole->devices());
  if (const auto wider = with_devices(whole, most)) whole = *wider;
  auto list = doubling_counts(*whole);
  if (std::find(list.begin(), list.end(), own) == list.end()) list.push_back(own);
  std::sort(list.begin(), list.end());
  return list;
}

void ParallelismTab::forget() {
  const Subject now = subject();
  if (now.source != subject_.source || now.cluster != subject_.cluster) {
    stale_.clear();
    batches_.forget(false);
    if (now.cluster != subject_.cluster) most_ = 0;
  } else {
    for (auto& [key, answer] : answers_) stale_[key] = answer;
    batches_.forget(true);
  }
  answers_.clear();
  subject_ = now;
  stopped_ = false;
  if (running_) {
    running_.reset();
    work_.tasks.cancel_purpose(kPlansPurpose);
  }
}

void ParallelismTab::scenario_changed() {
  if (!(subject() == subject_)) forget();
  show();
  start_if_due();
}

void ParallelismTab::follow_runner() {
  if (!work_.document.scenario()) return;
  // What the chart has found for the scenario's own count need not be searched again.
  bool news = false;
  for (const MethodRun& run : work_.runner.runs()) {
    if (!run.result || run.result->scenario != work_.document.scenario()) continue;
    const Key key{run.name, work_.document.scenario()->cluster->devices()};
    const auto known = answers_.find(key);
    const bool stopped = search::stopped_early(*run.result);
    if (known != answers_.end() && !known->second.error && (!known->second.coarse || run.coarse) &&
        (!known->second.stopped || stopped))
      continue;
    // What fits is said by peaks, which are on their way; a sketch is replaced anyway.
    const ResultPtr judged = work_.judge.judged(run);
    if (!run.coarse && judged == run.result && !work_.judge.settled() && can_judge_fits(*run.result)) continue;
    answers_[key] = answer_of(*judged, run.coarse);
    news = true;
  }
  if (news || looked_at_) show();
  start_if_due();
}

/// What failed, and what was stopped, which stays on show meanwhile.
void ParallelismTab::search_stopped_again() {
  std::erase_if(answers_, [this](const auto& one) {
    if (one.second.stopped) stale_[one.first] = one.second;
    return one.second.stopped || one.second.error;
  });
}

ParallelismTab::Answer ParallelismTab::answer_of(const Result& result, bool coarse) {
  Answer answer;
  answer.stopped = search::stopped_early(result);
  answer.coarse = coarse && !result.exact && !answer.stopped;
  if (result.points.empty()) {
    answer.refusal = "no plan";
    return answer;
  }
  const auto fastest = result.fastest_that_fits();
  const ResultPoint& point = result.points[fastest.value_or(least_peak(result).value_or(0))];
  answer.fits = fastest.has_value();
  answer.memory_bytes = point.simulated_memory_bytes.value_or(point.memory_bytes);
  answer.time_s = point.time_s;
  return answer;
}

std::vector<ParallelismTab::Job> ParallelismTab::missing() const {
  std::vector<Job> jobs;
  // A sketch of every line first, then the long searches.
  for (const SearchPass pass : {SearchPass::coarse, SearchPass::exact})
    for (const int devices : counts())
      for (const MethodRun& run : work_.runner.runs()) {
        if (!run.enabled || (pass == SearchPass::exact && !run.method->frontier)) continue;
        const auto known = answers_.find({run.name, devices});
        const bool there = known != answers_.end() && (pass == SearchPass::coarse || !known->second.coarse);
        if (!there)
          jobs.push_back(
              {contender(*run.method, run.parameters), devices, run.method->frontier ? pass : SearchPass::exact});
      }
  return jobs;
}

void ParallelismTab::looked_at_changed(bool looked_at) {
  looked_at_ = looked_at;
  if (!looked_at) {
    stop_all();
    return;
  }
  show();
  start_if_due();
}

bool ParallelismTab::of_batches() const { return view_->batch_button()->isChecked(); }

void ParallelismTab::largest_batch_chosen() {
  stop_all();
  stopped_ = false;
  show();
  start_if_due();
}

/// Nobody sees it: the cores are for what is seen. What was found stays.
void ParallelismTab::stop_all() {
  if (running_) {
    running_.reset();
    work_.tasks.cancel_purpose(kPlansPurpose);
  }
  if (batches_.running()) batches_.leave();
}

std::vector<std::string> ParallelismTab::checked() const {
  std::vector<std::string> names;
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled) names.push_back(run.name);
  return names;
}

bool ParallelismTab::settled() const {
  if (running_ || batches_.running()) return false;
  if (!looked_at_) return true;
  if (!of_batches()) return stopped_ || missing().empty();
  return batches_.stopped() || batches_.complete(checked(), counts());
}

void ParallelismTab::start_if_due() {
  if (!looked_at_ || running_ || stopped_ || !work_.document.scenario() || work_.document.building()) return;
  if (of_batches()) return start_batches();
  if (work_.runner.settled() && !work_.judge.settled()) return;  // what it says need not be found again
  // What the chart is about goes first: a sketch here after its sketch, the long searches after its own.
  const MethodRun* main = work_.runner.subject();
  const bool shown = main && main->result && main->result->scenario == work_.document.scenario();
  const bool settled = work_.runner.settled();
  if (!settled && !(shown && work_.runner.hand_rests())) return;
  auto jobs = missing();
  if (!settled) std::erase_if(jobs, [](const Job& job) { return job.pass != SearchPass::coarse; });
  if (!jobs.empty()) start(std::move(jobs));
}

ScenarioPtr ParallelismTab::whole_scenario() const {
  // From the whole cluster, so that counts above the scenario's own are there too.
  auto whole = std::make_shared<Scenario>(*work_.document.scenario());
  whole->cluster = work_.document.state().cluster;
  whole->settings.devices = 0;
  return whole;
}

void ParallelismTab::start_batches() {
  if (batches_.running() || batches_.stopped() || !work_.runner.settled()) return;
  std::vector<LargestBatchLines::Line> lines;
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled) lines.push_back({run.name, batch_contender(*run.method, run.parameters)});
  batches_.start(std::move(lines), work_.document.state().source, whole_scenario(), counts());
}

void ParallelismTab::start(std::vector<Job> jobs) {
  auto mailbox = std::make_shared<Mailbox>();
  running_ = mailbox;
  ++searches_;
  work_.tasks.start(
      kPlansPurpose, tr("Parallelism"),
      [this, mailbox, jobs = std::move(jobs), scenario = whole_scenario()](const RunContext& context) {
        work(jobs, scenario, mailbox, context);
      },
      [this, mailbox](TaskOutcome outcome) { ended(mailbox, outcome == TaskOutcome::finished); });
  show_state();
}

void ParallelismTab::work(const std::vector<Job>& jobs, const ScenarioPtr& whole,
                          const std::shared_ptr<Mailbox>& mailbox, const RunContext& context) {
  // A coarse pass leaves tables behind that the exact one of the same count takes up.
  std::map<Key, std::unique_ptr<Searcher>> kept;
  std::set<Key> certain;
  for (std::size_t i = 0; i < jobs.size() && !context.cancelled(); ++i) {
    const Job& job = jobs[i];
    const Key key{job.method.name, job.devices};
    if (certain.contains(key)) continue;
    RunContext part = context;
    part.progress = [&context, &job, i, count = jobs.size()](const Progress& inner) {
      if (context.progress)
        context.progress(
            {std::to_string(job.devices) + (job.devices == 1 ? " device: " : " devices: ") + inner.phase,
             (static_cast<double>(i) + std::clamp(inner.fraction, 0.0, 1.0)) / static_cast<double>(count)});
    };
    Answer answer;
    const auto here = on_devices(whole, job.devices);
    if (!here) {
      answer.refusal = here.error().what;
    } else if (auto reason = job.method.refuses(**here); !reason.empty()) {
      answer.refusal = std::move(reason);
    } else {
      auto& searcher = kept[key];
      if (!searcher) searcher = job.method.make();
      auto found = searcher->run(*here, job.pass, part);
      const bool stopped = found && search::stopped_early(**found);
      if (!stopped && (part.cancelled() || (!found && found.error().code == ErrorCode::cancelled))) return;
      std::string no_peak;
      if (found && !stopped && (job.pass == SearchPass::exact || (*found)->exact)) {
        // Where peaks cannot be had, plain sums go on to say what fits, and the point says that they do.
        auto judged = judged_by_peaks(*found, part);
        if (!judged && judged.error().code == ErrorCode::cancelled) return;
        if (judged)
          found = std::move(judged);
        else
          no_peak = judged.error().what;
      }
      if (found) {
        answer = answer_of(**found, job.pass == SearchPass::coarse);
        answer.no_peak = std::move(no_peak);
      } else
        answer.error = found.error();
      if (job.pass == SearchPass::exact) kept.erase(key);
    }
    if (!answer.coarse) certain.insert(key);
    {
      const std::lock_guard lock(mailbox->mutex);
      mailbox->found.emplace_back(key, std::move(answer));
    }
    QMetaObject::invokeMethod(
        this, [this, mailbox] { take(mailbox); }, Qt::QueuedConnection);
  }
}

void ParallelismTab::take(const std::shared_ptr<Mailbox>& mailbox) {
  if (mailbox != running_) return;  // of a scenario that is gone
  std::vector<std::pair<Key, Answer>> found;
  {
    const std::lock_guard lock(mailbox->mutex);
    found.swap(mailbox->found);
  }
  for (auto& [key, answer] : found) answers_[key] = std::move(answer);
  if (!found.empty()) show();
}

void ParallelismTab::ended(const std::shared_ptr<Mailbox>& mailbox, bool finished) {
  if (mailbox != running_) {
    start_if_due();
    return;
  }
  take(mailbox);
  running_.reset();
  stopped_ = !finished;
  show();
  start_if_due();
}

views::ParallelismPoint ParallelismTab::time_point(const Key& key) const {
  using State = views::ParallelismPoint::State;
  views::ParallelismPoint point;
  point.devices = key.second;
  const auto at = answers_.find(key), before = stale_.find(key);
  const bool old = at == answers_.end();
  if (old && before == stale_.end()) return point;
  const Answer& answer = old ? before->second : at->second;
  point.state = answer.error              ? State::failed
                : !answer.refusal.empty() ? State::refused
                : answer.fits             ? State::fits
                                          : State::does_not_fit;
  point.stopped = answer.stopped;
  point.no_peak = views::to_qt(answer.no_peak);
  point.coarse = answer.coarse || (old && !answer.stopped);
  point.time_s = answer.time_s;
  point.memory_bytes = answer.memory_bytes;
  point.reason = views::to_qt(answer.error ? answer.error->what : answer.refusal);
  return point;
}

views::ParallelismPoint ParallelismTab::batch_point(const Key& key) const {
  using State = views::ParallelismPoint::State;
  views::ParallelismPoint point;
  point.devices = key.second;
  const auto* now = batches_.answer(key.first, key.second);
  const auto* answer = now ? now : batches_.old_answer(key.first, key.second);
  if (!answer) return point;
  point.coarse = !now;
  point.state = answer->error              ? State::failed
                : !answer->refusal.empty() ? State::refused
                : answer->fits             ? State::fits
                                           : State::does_not_fit;
  point.time_s = answer->time_s;
  point.memory_bytes = answer->memory_bytes;
  point.batch = answer->batch;
  point.bound = views::to_qt(answer->bound);
  point.reason = views::to_qt(answer->error ? answer->error->what : answer->refusal);
  return point;
}

const Error* ParallelismTab::failure() const {
  if (of_batches()) return batches_.failure();
  for (const auto& [key, answer] : answers_)
    if (answer.error) return &*answer.error;
  return nullptr;
}

QString ParallelismTab::nothing_words(const std::vector<int>& counts) const {
  if (const Error* failed = failure()) return tr("The search failed: %1").arg(views::to_qt(failed->what));
  if (of_batches() ? batches_.stopped() : stopped_) return tr("Stopped before anything was found");
  if (!of_batches()) return tr("Looking for the fastest plan on %1 devices").arg(joined(counts));
  if (const std::string refusal = batches_.refusal(); !refusal.empty() && batches_.complete(checked(), counts))
    return views::to_qt(refusal);
  return tr("Looking for the largest batch that fits on %1 devices").arg(joined(counts));
}

Tab* parallelism_tab(const TabParts& parts) { return new ParallelismTab(parts); }

}  // namespace turnpoint::app
