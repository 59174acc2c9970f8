// SPDX-License-Identifier: Apache-2.0
// Runs plans on this machine for the Validation tab: a job for turnpoint-probe, what it measured beside what was
// predicted; and calibration with what was run. All on a worker; the newest request wins.
#pragma once

#include <QObject>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/plan/result.h"
#include "core/validation/engine/engine_step.h"
#include "core/validation/validate_plans.h"

namespace turnpoint::app {

class TaskManager;

using ReportPtr = std::shared_ptr<const ValidationReport>;

/// A point of a result whose plan is to be run.
struct PlanToRun {
  ResultPtr result;
  std::size_t index = 0;
  StepChoice choice;
  bool calibrated = false;         ///< the hardware it was predicted for knows runs of before
  const Engine* engine = nullptr;  ///< runs the exported program; null: turnpoint-probe runs the plan
  /// Of an engine, as EngineRequest has both.
  std::vector<std::string> launcher = {};
  std::string model_code = {};
};

/// A profile that knows what runs took, and the same runs as it, or one without the run itself, would have predicted
/// them.
struct CalibratedProfile {
  ClusterPtr cluster;
  std::string path;  ///< where it is kept
  std::vector<std::string> notes;
  std::vector<ReportPtr> reports;
};

class ValidationRunner : public QObject {
  Q_OBJECT
 public:
  explicit ValidationRunner(TaskManager& tasks, QObject* parent = nullptr);

  /// One after the other; a report comes as soon as its plan was run. A plan that cannot be run is left out and said at
  /// the end; a probe that fails ends all.
  void run(std::vector<PlanToRun> plans);
  /// With the runs behind these reports that were of the same scenario as the first one's. Reports that were not made
  /// here are left out.
  void calibrate(const std::vector<ReportPtr>& reports);
  /// Whether the run behind this report is known, so that it can calibrate.
  bool knows(const ReportPtr& report) const { return runs_.contains(report); }
  void forget(const ReportPtr& report) { runs_.erase(report); }
  void cancel();
  bool running() const { return running_ > 0; }
  QString phase() const;  ///< what is being done, in words; empty: nothing

 signals:
  void report_made(const turnpoint::app::ReportPtr& report);
  void calibrated(const std::shared_ptr<const turnpoint::app::CalibratedProfile>& profile);
  void failed(const turnpoint::Error& error, const QString& action);
  void running_changed();
  void phase_changed();

 private:
  /// Everything a calibration needs of a run.
  struct Run {
    ScenarioPtr scenario;
    std::shared_ptr<const ValidatedPlan> plan;  ///< null: an engine ran it
    ReportPtr report;
  };
  struct Mailbox;
  struct Calibration;
  /// Whether something else computes on this machine for us right now.
  bool disturbed() const;
  static Expected<Run> run_one(const PlanToRun& wanted, const RunContext& context);
  static void work(const std::vector<PlanToRun>& plans, ValidationRunner* self, const std::shared_ptr<Mailbox>& mailbox,
                   const RunContext& context);
  static void calibrate_with(const std::vector<Run>& runs, Calibration& made);
  void take(const std::shared_ptr<Mailbox>& mailbox);

  TaskManager& tasks_;
  std::map<ReportPtr, Run> runs_;
  int running_ = 0;
  bool disturbed_ = false;  ///< since the newest report, or the start
};

}  // namespace turnpoint::app
