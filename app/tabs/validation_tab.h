// SPDX-License-Identifier: Apache-2.0
// The Validation tab: plans that were run here, which plan would be run, why it cannot be.
#pragma once

#include <QStringList>
#include <optional>
#include <string>
#include <vector>

#include "app/tab.h"
#include "core/validation/run_needs.h"
#include "views/validation/validation_view.h"

namespace turnpoint::app {

/// How a plan is run when the user asks for it in this way.
StepChoice step_choice(views::ValidationWay way, bool prove, const Scenario& scenario,
                       double budget_s = StepChoice().budget_s);

class ValidationTab : public ViewTab<views::ValidationView> {
 public:
  static constexpr std::size_t kSample = 20;

  explicit ValidationTab(const TabParts& parts);

  bool open_files(FileKind kind, const QStringList& paths) override;
  void write(Session& session) const override;
  void read(const Session& session) override;
  void add_to(KeptWork& work) const override;
  void run();
  void run_sample();
  void calibrate();
  void open(const QString& path);
  bool save(const QString& path);           ///< all reports of the plan's group where the page of all plans is on show
  bool export_report(const QString& path);  ///< .csv or .md by suffix

  /// Why the picked plan cannot be run; empty: it can.
  QString refusal() const;
  /// What run_sample() would run.
  std::vector<PlanToRun> sample() const;
  const std::vector<ReportPtr>& reports() const { return reports_; }
  /// The newest of the picked plan, as it was predicted rather than calibrated where there are both; null: none.
  ReportPtr report_of_picked() const;
  void show(const ReportPtr& report);

 protected:
  void set_model(const ScenarioPtr& scenario) override;  ///< for the selection

 private:
  /// What a run would take, of the plan that was asked for last.
  struct Room {
    const Result* result = nullptr;
    std::size_t index = 0;
    StepMode mode = StepMode::ranks;
    bool prove = true;
    double budget_s = 0;
    HostRoom host;
    std::optional<RunNeeds> needs;
    std::optional<Error> error;
  };
  void refresh();  ///< says once more what can be run and what there is of the picked plan
  void ask_save(const QString& suffix);
  StepChoice choice_for(const Scenario& scenario) const;
  QString running_words() const;
  QString nothing_to_run() const;  ///< why there is no plan of operators; empty: there is one
  QString refusal_of(const Result& result, std::size_t index, const AnyPlan& plan) const;
  const Engine* engine() const;  ///< that is to run plans; null: our own probe is
  PlanToRun to_run(const ResultPtr& result, std::size_t index, const StepChoice& choice) const;
  void show_engine();  ///< what it is run with, and the command that does the same
  QString engine_command(QString& why_none) const;
  QString engine_refusal(const Engine& engine, const Scenario& scenario, const AnyPlan& plan,
                         const StepChoice& choice) const;
  const Error* room_refusal(const Result& result, std::size_t index, const AnyPlan& plan,
                            const StepChoice& choice) const;
  void add(std::vector<ReportPtr> reports, bool show);
  void remove(const QList<int>& rows);
  bool write_file(const QString& path, const std::string& text, const QString& action);
  std::vector<ValidationReport> on_show() const;
  static bool is_calibrated(const Scenario& scenario);

  ValidationRunner& runner_;
  views::PlanPanel& panel_;
  std::vector<ReportPtr> reports_;
  mutable Room room_;
  QString refusal_;        ///< when it was last looked at
  QString expected_;       ///< of the plan that is being run: how long it will take, in words
  bool show_next_ = true;  ///< of a series of runs the first is shown; the others must not push it away
};

}  // namespace turnpoint::app
