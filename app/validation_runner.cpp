// SPDX-License-Identifier: Apache-2.0
#include "app/validation_runner.h"

#include <fmt/format.h>
#include <QDateTime>
#include <mutex>

#include "app/profiles.h"
#include "app/task_manager.h"
#include "core/export/format.h"
#include "core/probe/step_client.h"
#include "core/validation/engine/engine_validation.h"
#include "views/common/format.h"
#include "views/validation/validation_content.h"

namespace turnpoint::app {

namespace {

const QString kPurpose = QStringLiteral("validation"), kCalibrate = QStringLiteral("calibration");
constexpr const char* kCalibrated = "-calibrated";

std::string now() { return QDateTime::currentDateTimeUtc().toString(Qt::ISODate).toStdString(); }

/// The part of the whole run that one plan is.
RunContext part_of(const RunContext& context, std::size_t at, std::size_t count) {
  RunContext part = context;
  if (count > 1 && context.progress)
    part.progress = [&context, at, count](const Progress& inner) {
      context.progress({fmt::format("plan {} of {}: {}", at + 1, count, inner.phase),
                        (static_cast<double>(at) + std::max(0.0, inner.fraction)) / static_cast<double>(count)});
    };
  return part;
}

}  // namespace

/// Where a worker leaves its runs while it goes on.
struct ValidationRunner::Mailbox {
  std::mutex mutex;
  std::vector<Run> made;
  // Read when the worker has ended.
  std::optional<Error> error;
  int left_out = 0;
  std::size_t count = 0;
};

struct ValidationRunner::Calibration {
  std::shared_ptr<CalibratedProfile> profile;
  std::optional<Error> error;
};

ValidationRunner::ValidationRunner(TaskManager& tasks, QObject* parent) : QObject(parent), tasks_(tasks) {
  connect(&tasks_, &TaskManager::changed, this, [this] {
    if (!running()) return;
    disturbed_ = disturbed_ || disturbed();
    emit phase_changed();
  });
}

QString ValidationRunner::phase() const {
  if (!running()) return {};
  for (const TaskInfo& task : tasks_.tasks())
    if ((task.purpose == kPurpose || task.purpose == kCalibrate) && !task.waiting && !task.phase.isEmpty())
      return tr("Running: %1").arg(task.phase);
  return tr("Running\u2026");
}

bool ValidationRunner::disturbed() const {
  for (const TaskInfo& task : tasks_.tasks())
    if (!task.waiting && !task.stopping && (task.purpose.startsWith(u"search:") || task.purpose == u"parallelism"))
      return true;
  return false;
}

Expected<ValidationRunner::Run> ValidationRunner::run_one(const PlanToRun& wanted, const RunContext& context) {
  Run run{wanted.result->scenario, nullptr, nullptr};
  if (wanted.engine) {
    auto program = export_text(*find_format(wanted.engine->format), {{}, wanted.result, wanted.index});
    if (!program) return program.error();
    const EngineRequest request{wanted.engine, std::move(*program), wanted.model_code, {}, wanted.launcher};
    auto report = validate_by_engine(request, *wanted.result, wanted.index, wanted.choice, now(), context);
    if (!report) return report.error();
    report->calibrated = wanted.calibrated;
    run.report = std::make_shared<const ValidationReport>(std::move(*report));
    return run;
  }
  const auto program = find_probe();
  if (!program) return program.error();
  ProbeLaunch launch;
  launch.program = *program;
  const StepRunner runner = [&launch](const StepJob& job, const RunContext& of_job) {
    return measure_step(launch, job, of_job);
  };
  const HostRoom host = this_host();
  auto plan = validate_point(*wanted.result, wanted.index, wanted.choice, now(), runner, context, &host);
  if (!plan) return plan.error();
  plan->report.calibrated = wanted.calibrated;
  run.plan = std::make_shared<const ValidatedPlan>(std::move(*plan));
  run.report = std::make_shared<const ValidationReport>(run.plan->report);
  return run;
}

void ValidationRunner::work(const std::vector<PlanToRun>& plans, ValidationRunner* self,
                            const std::shared_ptr<Mailbox>& mailbox, const RunContext& context) {
  mailbox->count = plans.size();
  for (std::size_t i = 0; i < plans.size() && !context.cancelled(); ++i) {
    auto run = run_one(plans[i], part_of(context, i, plans.size()));
    if (!run) {
      if (run.error().code == ErrorCode::cancelled) return;
      ++mailbox->left_out;
      if (!mailbox->error) mailbox->error = run.error();
      // A probe that crashes or hangs would do so again; a plan that it cannot carry out says nothing of the next.
      if (run.error().code == ErrorCode::device) return;
      continue;
    }
    {
      const std::lock_guard lock(mailbox->mutex);
      mailbox->made.push_back(std::move(*run));
    }
    QMetaObject::invokeMethod(
        self, [self, mailbox] { self->take(mailbox); }, Qt::QueuedConnection);
  }
}

void ValidationRunner::run(std::vector<PlanToRun> plans) {
  if (plans.empty()) return;
  auto mailbox = std::make_shared<Mailbox>();
  const QString title = plans.size() == 1
                            ? tr("Run %1").arg(views::to_qt(point_label(*plans.front().result, plans.front().index)))
                            : tr("Run %1 plans").arg(plans.size());
  ++running_;
  disturbed_ = disturbed();
  tasks_.start(
      kPurpose, title,
      [this, mailbox, plans = std::move(plans)](const RunContext& context) { work(plans, this, mailbox, context); },
      [this, mailbox](TaskOutcome outcome) {
        --running_;
        take(mailbox);
        if (mailbox->error && outcome == TaskOutcome::finished) {
          Error error = *mailbox->error;
          error.hint = views::in_window_words(error.hint);
          if (mailbox->count > 1 && mailbox->left_out > 0)
            error.what =
                fmt::format("{} of {} plans could not be run: {}", mailbox->left_out, mailbox->count, error.what);
          emit failed(error, tr("Run this plan here"));
        }
        emit running_changed();
      });
  emit running_changed();
}

void ValidationRunner::take(const std::shared_ptr<Mailbox>& mailbox) {
  std::vector<Run> made;
  {
    const std::lock_guard lock(mailbox->mutex);
    made.swap(mailbox->made);
  }
  for (Run& run : made) {
    if (disturbed_) {
      ValidationReport told = *run.report;
      told.notes.push_back(fmt::format("{}: the times are longer than they need be", kSearchesRan));
      run.report = std::make_shared<const ValidationReport>(std::move(told));
    }
    const ReportPtr report = run.report;
    // The steps of a ratio plan calibrate nothing, nor does an engine, whose operators have no times.
    if (run.plan && !report->ratio) runs_.emplace(report, std::move(run));
    disturbed_ = disturbed();
    emit report_made(report);
  }
}

void ValidationRunner::calibrate_with(const std::vector<Run>& runs, Calibration& made) {
  std::vector<ValidatedPlan> plans;
  for (const Run& run : runs) plans.push_back(*run.plan);
  const ScenarioPtr& scenario = runs.front().scenario;
  auto known = calibrate_plans(*scenario, plans);
  if (!known) {
    made.error = known.error();
    return;
  }
  Cluster cluster = *known->cluster;
  if (!cluster.name.ends_with(kCalibrated)) {
    cluster.name += kCalibrated;
    cluster.title += " (calibrated)";
  }
  const auto path = store_profile(cluster);
  if (!path) {
    made.error = path.error();
    return;
  }
  auto profile = std::make_shared<CalibratedProfile>();
  profile->path = *path;
  profile->cluster = std::make_shared<const Cluster>(std::move(cluster));
  profile->notes = std::move(known->notes);
  for (ValidationReport& report : known->reports)
    profile->reports.push_back(std::make_shared<const ValidationReport>(std::move(report)));
  made.profile = std::move(profile);
}

void ValidationRunner::calibrate(const std::vector<ReportPtr>& reports) {
  std::vector<Run> runs;
  for (const ReportPtr& report : reports)
    if (const auto known = runs_.find(report); known != runs_.end())
      if (runs.empty() || runs.front().scenario == known->second.scenario) runs.push_back(known->second);
  if (runs.empty()) return;
  auto made = std::make_shared<Calibration>();
  ++running_;
  tasks_.start(
      kCalibrate, tr("Calibrate"), [made, runs = std::move(runs)](const RunContext&) { calibrate_with(runs, *made); },
      [this, made](TaskOutcome outcome) {
        --running_;
        if (outcome == TaskOutcome::finished) {
          if (made->error) emit failed(*made->error, tr("Calibrate"));
          if (made->profile) emit calibrated(made->profile);
        }
        emit running_changed();
      });
  emit running_changed();
}

void ValidationRunner::cancel() {
  tasks_.cancel_purpose(kPurpose);
  tasks_.cancel_purpose(kCalibrate);
}

}  // namespace turnpoint::app
