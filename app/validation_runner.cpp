// SPDX-License-Identifier: Apache-2.0
#include "app/validation_runner.h"

#include <fmt/format.h>
#include <QDateTime>
#include <mutex>

#include "app/hardware_page.h"
#include "app/task_manager.h"
#include "core/base/text.h"
#include "core/plan/reprice.h"
#include "core/plan/step_client.h"
#include "core/validation/calibrated.h"
#include "core/validation/compare.h"

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
  std::vector<Run> runs;  ///< those behind the profile's reports
  std::optional<Error> error;
};

ValidationRunner::ValidationRunner(TaskManager& tasks, QObject* parent) : QObject(parent), tasks_(tasks) {}

std::string ValidationRunner::label(const PlanToRun& plan) {
  const ResultPoint& point = plan.result->points[plan.index];
  return fmt::format("{}, point {}: {}, {}", plan.title, plan.index + 1, format_bytes(point.memory_bytes),
                     format_seconds(point.time_s));
}

Expected<ValidationRunner::Run> ValidationRunner::run_one(const PlanToRun& wanted, const std::string& program,
                                                          const RunContext& context) {
  Run run;
  run.scenario = wanted.result->scenario;
  run.plan = std::make_shared<const Plan>(wanted.result->plans->plan(wanted.index));
  const auto job = step_job_of(*run.scenario, *run.plan, wanted.choice);
  if (!job) return job.error();
  ProbeLaunch launch;
  launch.program = program;
  auto measured = measure_step(launch, *job, context);
  if (!measured) return measured.error();
  run.measurement = std::make_shared<const StepMeasurement>(std::move(*measured));
  auto report = compare_step(*run.scenario, *run.plan, *run.measurement, {label(wanted), now(), wanted.calibrated});
  if (!report) return report.error();
  run.report = std::make_shared<const ValidationReport>(std::move(*report));
  return run;
}

void ValidationRunner::work(const std::vector<PlanToRun>& plans, ValidationRunner* self,
                            const std::shared_ptr<Mailbox>& mailbox, const RunContext& context) {
  mailbox->count = plans.size();
  const auto program = find_probe();
  if (!program) {
    mailbox->error = program.error();
    return;
  }
  for (std::size_t i = 0; i < plans.size() && !context.cancelled(); ++i) {
    auto run = run_one(plans[i], *program, part_of(context, i, plans.size()));
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
  const QString title = plans.size() == 1 ? tr("Run %1").arg(QString::fromStdString(label(plans.front())))
                                          : tr("Run %1 plans").arg(plans.size());
  ++running_;
  tasks_.start(
      kPurpose, title,
      [this, mailbox, plans = std::move(plans)](const RunContext& context) { work(plans, this, mailbox, context); },
      [this, mailbox](TaskOutcome outcome) {
        --running_;
        take(mailbox);
        if (mailbox->error && outcome == TaskOutcome::finished) {
          Error error = *mailbox->error;
          if (mailbox->count > 1)
            error.what = fmt::format("{} of {} plans could not be run: {}", mailbox->left_out, mailbox->count, error.what);
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
    const ReportPtr report = run.report;
    runs_.emplace(report, std::move(run));
    emit report_made(report);
  }
}

void ValidationRunner::calibrate_with(const std::vector<Run>& runs, Calibration& made) {
  std::vector<CalibrationRun> used;
  for (const Run& run : runs) used.push_back({run.scenario.get(), run.plan.get(), run.measurement.get()});
  auto profile = std::make_shared<CalibratedProfile>();
  Cluster cluster = *calibrated_with(runs.front().scenario->cluster, used, profile->notes);
  if (!cluster.name.ends_with(kCalibrated)) {
    cluster.name += kCalibrated;
    cluster.title += ", calibrated";
  }
  const auto path = HardwarePage::store(cluster);
  if (!path) {
    made.error = path.error();
    return;
  }
  profile->path = *path;
  profile->cluster = std::make_shared<const Cluster>(std::move(cluster));
  for (const Run& run : runs) {
    auto scenario = std::make_shared<Scenario>(*run.scenario);
    scenario->cluster = profile->cluster;
    scenario->hardware = profile->path;
    const auto plan = repriced(*scenario, *run.plan);
    if (!plan) {
      made.error = plan.error();
      continue;
    }
    auto report = compare_step(*scenario, *plan, *run.measurement, {run.report->plan, run.report->date, true});
    if (!report) {
      made.error = report.error();
      continue;
    }
    made.runs.push_back({scenario, std::make_shared<const Plan>(*plan), run.measurement,
                         std::make_shared<const ValidationReport>(std::move(*report))});
    profile->reports.push_back(made.runs.back().report);
  }
  made.profile = std::move(profile);
}

void ValidationRunner::calibrate(const std::vector<ReportPtr>& reports) {
  std::vector<Run> runs;
  for (const ReportPtr& report : reports)
    if (const auto known = runs_.find(report); known != runs_.end()) runs.push_back(known->second);
  // Runs on other machines, or of plans for another one, would calibrate something else.
  std::erase_if(runs, [first = runs.empty() ? nullptr : runs.front().scenario->cluster](const Run& run) {
    return run.scenario->cluster != first;
  });
  if (runs.empty()) return;
  auto made = std::make_shared<Calibration>();
  ++running_;
  tasks_.start(
      kCalibrate, tr("Calibrate"),
      [made, runs = std::move(runs)](const RunContext&) { calibrate_with(runs, *made); },
      [this, made](TaskOutcome outcome) {
        --running_;
        if (outcome == TaskOutcome::finished) {
          if (made->error) emit failed(*made->error, tr("Calibrate"));
          for (Run& run : made->runs) {
            const ReportPtr report = run.report;
            runs_.emplace(report, std::move(run));
          }
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
