// SPDX-License-Identifier: Apache-2.0
// Between the Validation tab and what it is about: which plan would be run, why it cannot be, the reports there are.
#pragma once

#include <QObject>
#include <QStringList>
#include <optional>
#include <string>
#include <vector>

#include "app/validation_runner.h"
#include "core/scenario/scenario.h"
#include "core/validation/run_needs.h"

namespace turnpoint::views {
class ValidationView;
enum class ValidationWay : std::uint8_t;
}  // namespace turnpoint::views

namespace turnpoint::app {

class ActionSet;
class Document;
class PlanLoader;
class SearchRunner;

/// How a plan is run when the user asks for it in this way.
StepChoice step_choice(views::ValidationWay way, bool prove, const Scenario& scenario,
                       double budget_s = StepChoice().budget_s);

class ValidationPage : public QObject {
  Q_OBJECT
 public:
  static constexpr std::size_t kSample = 20;

  ValidationPage(Document& document, SearchRunner& searches, PlanLoader& plans, ValidationRunner& runner,
                 views::ValidationView* view, const ActionSet& actions, QObject* parent = nullptr);

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
  void look_again() { refresh(); }  ///< says once more what can be run and what there is of the picked plan
  void set_reports(std::vector<ReportPtr> reports);

 signals:
  void failed(const turnpoint::Error& error, const QString& action);
  void written(const QString& path);
  void shown();  ///< a report came that somebody asked for
  /// The newest report of the picked plan; null: none, and `how` says how to get one.
  void picked_report(const turnpoint::app::ReportPtr& report, const QString& how);
  void profile_made(const std::shared_ptr<const turnpoint::app::CalibratedProfile>& profile);

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
  void refresh();
  StepChoice choice_for(const Scenario& scenario) const;
  QString running_words() const;
  QString refusal_of(const Result& result, std::size_t index, const AnyPlan& plan) const;
  const Error* room_refusal(const Result& result, std::size_t index, const AnyPlan& plan,
                            const StepChoice& choice) const;
  void add(std::vector<ReportPtr> reports, bool show);
  void remove(const QList<int>& rows);
  bool write(const QString& path, const std::string& text, const QString& action);
  std::vector<ValidationReport> on_show() const;
  static bool is_calibrated(const Scenario& scenario);

  Document& document_;
  SearchRunner& searches_;
  PlanLoader& plans_;
  ValidationRunner& runner_;
  views::ValidationView* view_;
  const ActionSet& actions_;
  std::vector<ReportPtr> reports_;
  mutable Room room_;
  QString refusal_;        ///< when it was last looked at
  QString expected_;       ///< of the plan that is being run: how long it will take, in words
  bool show_next_ = true;  ///< of a series of runs the first is shown; the others must not push it away
};

}  // namespace turnpoint::app
