// SPDX-License-Identifier: Apache-2.0
#include "app/tabs/validation_tab.h"

#include <QAction>
#include <QPushButton>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/actions.h"
#include "app/engine_commands.h"
#include "app/file_kind.h"
#include "app/file_path.h"
#include "app/found_again.h"
#include "app/kept_work.h"
#include "app/opener.h"
#include "app/voice.h"
#include "core/base/json.h"
#include "core/base/machine_memory.h"
#include "core/export/format.h"
#include "core/hardware/probe_client.h"
#include "core/validation/engine/engine_run.h"
#include "core/validation/placement_step.h"
#include "views/common/format.h"
#include "views/plan/plan_panel.h"
#include "views/validation/engine_fields.h"

namespace turnpoint::app {

namespace {

QString as_sentence(const Error& error) {
  const auto sentence = [](const std::string& text) {
    QString words = views::to_qt(text);
    if (!words.isEmpty()) words[0] = words[0].toUpper();
    return words.isEmpty() ? words : words + u'.';
  };
  const QString hint = sentence(error.hint);
  return hint.isEmpty() ? sentence(error.what) : sentence(error.what) + u' ' + hint;
}

/// Micro-batches alone make no stages.
bool has_stages(const AnyPlan& plan) {
  const auto* split = std::get_if<PlanPtr>(&plan);
  return split && (*split)->pipeline && (*split)->pipeline->stages > 1;
}

QString what_if_refusal(const Scenario& scenario) {
  WhatIf factors = scenario.settings.factors;
  factors.device_memory = 1;
  return factors == WhatIf() ? QString()
                             : ValidationTab::tr(
                                   "What-if sliders are set, and this machine cannot be made faster or slower. Reset "
                                   "them to run the plan as it was predicted.");
}

}  // namespace

StepChoice step_choice(views::ValidationWay way, bool prove, const Scenario& scenario, double budget_s) {
  StepChoice choice;
  choice.budget_s = budget_s;
  using Way = views::ValidationWay;
  choice.backend = find_engine(views::kWayKeys[int(way)]) ? ProbeBackend::automatic
                   : way == Way::cuda_slice               ? ProbeBackend::cuda
                                                          : ProbeBackend::cpu;
  choice.prove = prove;
  const bool slice = way == Way::cpu_slice || way == Way::cuda_slice;
  choice.mode = slice && scenario.cluster->devices() > 1 ? StepMode::slice : StepMode::ranks;
  return choice;
}

StepChoice ValidationTab::choice_for(const Scenario& scenario) const {
  return step_choice(view_->way(), view_->proves(), scenario, view_->budget_s());
}

QString ValidationTab::running_words() const {
  const QString phase = runner_.phase();
  return phase.isEmpty() || expected_.isEmpty() ? phase : phase + QStringLiteral(" \u00b7 ") + expected_;
}

ValidationTab::ValidationTab(const TabParts& parts)
    : ViewTab(
          parts, "validation", tr("Validation"),
          new views::ValidationView({parts.actions[ActionId::validate], parts.actions[ActionId::validate_sample],
                                     parts.actions[ActionId::calibrate], parts.actions[ActionId::open_report],
                                     parts.actions[ActionId::save_report], parts.actions[ActionId::export_report_csv],
                                     parts.actions[ActionId::export_report_markdown]},
                                    parts.window)),
      runner_(work_.validations),
      panel_(parts.plan_panel) {
  using View = views::ValidationView;
  connect(&work_.document, &Document::scenario_changed, this, &ValidationTab::refresh);
  connect(&work_.loader, &PlanLoader::plan_changed, this, &ValidationTab::refresh);
  connect(&work_.runner, &SearchRunner::result_changed, this, &ValidationTab::refresh);
  connect(&runner_, &ValidationRunner::running_changed, this, &ValidationTab::refresh);
  connect(&runner_, &ValidationRunner::phase_changed, this, [this] { view_->set_state(refusal_, running_words()); });
  connect(&runner_, &ValidationRunner::failed, &voice_, &Voice::report);
  connect(&runner_, &ValidationRunner::report_made, this, [this](const ReportPtr& report) {
    add({report}, show_next_);
    show_next_ = false;
    voice_.bar().clear_errors(ValidationRunner::tr("Run this plan here"));
  });
  connect(&runner_, &ValidationRunner::calibrated, this, [this](const std::shared_ptr<const CalibratedProfile>& made) {
    const ReportPtr before = view_->current();
    add(made->reports, true);
    // What calibrating changed is seen at once: the run on show, and beside it the same run predicted anew.
    for (const ReportPtr& after : made->reports)
      if (before && !before->calibrated && after->plan == before->plan && after->date == before->date)
        view_->compare(before, after);
    voice_.bar().clear_errors(ValidationRunner::tr("Calibrate"));
    emit raise_requested();  // where the error is seen to fall
  });
  connect(view_, &View::way_changed, this, &ValidationTab::refresh);
  connect(view_, &View::stop_requested, &runner_, &ValidationRunner::cancel);
  connect(view_, &View::current_changed, this, &ValidationTab::refresh);
  connect(view_, &View::remove_requested, this, &ValidationTab::remove);
  using Id = ActionId;
  on(Id::validate, [this] { run(); });
  on(Id::validate_sample, [this] { run_sample(); });
  on(Id::calibrate, [this] { calibrate(); });
  on(Id::open_report, [this, &opener = parts.opener] {
    voice_.ask_open(tr("Open validation report"), tr("Validation reports (*.json);;All files (*)"),
                    [&opener](const QString& path) { opener.open_path(path); });
  });
  on(Id::save_report, [this] { ask_save(QStringLiteral("json")); });
  on(Id::export_report_csv, [this] { ask_save(QStringLiteral("csv")); });
  on(Id::export_report_markdown, [this] { ask_save(QStringLiteral("md")); });
  connect(panel_.validate_button(), &QPushButton::clicked, actions_[Id::validate], &QAction::trigger);
  connect(&panel_, &views::PlanPanel::report_wanted, this, [this] { show(report_of_picked()); });
  refresh();
}

void ValidationTab::ask_save(const QString& suffix) {
  const bool json = suffix == u"json";
  voice_.ask_save(json ? tr("Save validation report") : tr("Export validation report"),
                  QStringLiteral("validation.") + suffix, filter_of(suffix),
                  [this, json](const QString& path) { json ? save(path) : export_report(path); });
}

QString ValidationTab::refusal_of(const Result& result, std::size_t index, const AnyPlan& plan) const {
  const Scenario& scenario = *result.scenario;
  if (const QString none = what_if_refusal(scenario); !none.isEmpty()) return none;
  const StepChoice choice = choice_for(scenario);
  const int devices = devices_of(plan);
  if (choice.backend == ProbeBackend::cpu) {
    if (scenario.settings.precision == Precision::bf16)
      return tr("The plan is in bf16, and CPU ranks compute in fp32. Set the precision to fp32.");
    if (choice.mode == StepMode::ranks && !has_stages(plan) && devices > kMostCpuRanks)
      return tr("The plan is for %1 devices, and at most %2 CPU ranks are run here. Choose fewer devices, or run one "
                "device's part.")
          .arg(devices)
          .arg(kMostCpuRanks);
  }
  if (const Engine* engine = this->engine()) {
    if (const QString none = engine_refusal(*engine, scenario, plan, choice); !none.isEmpty()) return none;
    const auto python = find_engine_python(*engine, {});
    return python ? QString() : as_sentence(python.error());
  }
  if (const auto job = step_job_of(scenario, plan, choice); !job) return as_sentence(job.error());
  if (const Error* error = room_refusal(result, index, plan, choice)) return as_sentence(*error);
  if (const auto probe = find_probe(); !probe) return views::to_qt(probe.error().message()) + u'.';
  return {};
}

const Engine* ValidationTab::engine() const { return find_engine(views::kWayKeys[int(view_->way())]); }

PlanToRun ValidationTab::to_run(const ResultPtr& result, std::size_t index, const StepChoice& choice) const {
  PlanToRun plan{result, index, choice, is_calibrated(*result->scenario), engine()};
  if (!plan.engine) return plan;
  const views::EngineFields& fields = *view_->engine_fields();
  if (auto words = launcher_words(fields.launcher().toStdString())) plan.launcher = std::move(*words);
  plan.model_code = fields.model_code().toStdString();
  return plan;
}

QString ValidationTab::engine_command(QString& why_none) const {
  why_none = nothing_to_run();
  if (!why_none.isEmpty()) return {};
  const ResultPtr& result = work_.loader.result();
  const Scenario& scenario = *result->scenario;
  const bool sketch = std::ranges::any_of(work_.runner.runs(),
                                          [&](const MethodRun& run) { return run.result == result && run.coarse; });
  why_none = why_not_found_again(*result, sketch);
  if (why_none.isEmpty()) why_none = what_if_refusal(scenario);
  // Run's own reasons, but for the Python that this machine may lack: the lines are for others, too.
  if (why_none.isEmpty())
    why_none = engine_refusal(*engine(), scenario, *work_.loader.picked_plan(), choice_for(scenario));
  if (!why_none.isEmpty()) return {};
  const views::EngineFields& fields = *view_->engine_fields();
  return engine_commands(*result, work_.loader.index(),
                         {.engine = engine()->key,
                          .launcher = fields.launcher().toStdString(),
                          .model_code = fields.model_code().toStdString(),
                          .prove = view_->proves(),
                          .budget_s = view_->budget_s()});
}

void ValidationTab::show_engine() {
  const Engine* engine = this->engine();
  views::EngineFields& fields = *view_->engine_fields();
  fields.setVisible(engine != nullptr);
  if (!engine) return;
  fields.set_engine(views::to_qt(engine->name), engine->one_process, engine->takes_model);
  QString why_none;
  const QString command = engine_command(why_none);
  fields.set_command(command, why_none);
}

// What can be said without the exported program, which is written on the way to its run, and holds on every machine.
QString ValidationTab::engine_refusal(const Engine& engine, const Scenario& scenario, const AnyPlan& plan,
                                      const StepChoice& choice) const {
  const ExportFormat& format = *find_format(engine.format);
  if (!format.accepts(kind_of(plan)))
    return as_sentence(usage_error(turnpoint::refusal_of(format, kind_of(plan), FormatNames::names)));
  const views::EngineFields& fields = *view_->engine_fields();
  if (const auto words = launcher_words(fields.launcher().toStdString()); !words) return as_sentence(words.error());
  const auto job =
      engine_job_of(engine, scenario, *std::get<PlanPtr>(plan), {}, fields.model_code().toStdString(), choice);
  if (job) return {};
  Error error = job.error();
  if (!error.hint.empty()) error.hint = "Model code takes a function that makes your model: FILE.py:FUNCTION";
  return as_sentence(error);
}

// Asked at every change of the page, and worked out once per plan and way to run it.
const Error* ValidationTab::room_refusal(const Result& result, std::size_t index, const AnyPlan& plan,
                                         const StepChoice& choice) const {
  if (choice.backend != ProbeBackend::cpu) return nullptr;
  Room& room = room_;
  if (room.result != &result || room.index != index || room.mode != choice.mode || room.prove != choice.prove ||
      room.budget_s != choice.budget_s) {
    room = {&result, index, choice.mode, choice.prove, choice.budget_s, this_host(), {}, {}};
    const auto needs = run_needs(*result.scenario, plan, choice, room.host);
    if (needs) room.needs = *needs;
  }
  if (!room.needs) return nullptr;
  room.host.memory_bytes = machine_memory().available;
  const auto fits = check_room(*room.needs, choice, room.host);
  room.error = fits ? std::optional<Error>() : fits.error();
  if (room.error) room.error->hint = views::in_window_words(room.error->hint);
  return room.error ? &*room.error : nullptr;
}

QString ValidationTab::nothing_to_run() const {
  const ScenarioPtr& scenario = work_.document.scenario();
  if (!scenario) return tr("Open a model and pick a plan in the chart.");
  if (scenario->tasks) return tr("A task graph has no operators that could be run; open a model.");
  if (!work_.loader.picked_plan() || !work_.loader.result()) return tr("Pick a plan in the chart.");
  return {};
}

QString ValidationTab::refusal() const {
  if (const QString none = nothing_to_run(); !none.isEmpty()) return none;
  return refusal_of(*work_.loader.result(), work_.loader.index(), *work_.loader.picked_plan());
}

bool ValidationTab::is_calibrated(const Scenario& scenario) {
  return QString::fromStdString(scenario.cluster->name).endsWith(QStringLiteral("-calibrated"));
}

void ValidationTab::run() {
  if (!refusal().isEmpty()) return;
  const ResultPtr& result = work_.loader.result();
  const StepChoice choice = choice_for(*result->scenario);
  expected_.clear();
  if (choice.backend == ProbeBackend::cpu && room_.needs && room_.needs->step_s > 0) {
    const double steps_s =
        std::min(choice.steps * room_.needs->step_s, std::max(choice.budget_s, room_.needs->least_s));
    expected_ = tr("predicted: %1 a step, %2 for %3 to warm up and %4 to time")
                    .arg(views::time_text(room_.needs->step_s),
                         views::time_text(choice.warm_up * room_.needs->step_s + steps_s))
                    .arg(choice.warm_up)
                    .arg(choice.steps);
  }
  runner_.run({to_run(result, work_.loader.index(), choice)});
  show_next_ = true;
  emit raise_requested();
}

std::vector<PlanToRun> ValidationTab::sample() const {
  std::vector<PlanToRun> plans;
  const auto add_from = [&](const MethodRun& run) {
    if (!run.enabled || !run.result || !run.result->plans || run.result->scenario != work_.document.scenario()) return;
    const Result& result = *run.result;
    const std::size_t chosen =
        work_.loader.result() == run.result ? work_.loader.index() : result.turning_point.value_or(0);
    for (const std::size_t at : sampled_points(result, kSample - plans.size(), chosen)) {
      const StepChoice choice = choice_for(*result.scenario);
      if (engine() && !find_format(engine()->format)->accepts(result.plans->kind(at))) continue;
      // Of a placement one device's part alone cannot be run.
      if (!engine() && result.plans->kind(at) == PlanKind::placement &&
          !step_job_of(*result.scenario, result.plans->plan(at), choice))
        continue;
      plans.push_back(to_run(run.result, at, choice));
    }
  };
  const MethodRun* subject = work_.runner.subject();
  if (subject) add_from(*subject);
  // A short frontier is filled up with what other methods found.
  for (const MethodRun& run : work_.runner.runs())
    if (&run != subject && plans.size() < kSample) add_from(run);
  return plans;
}

void ValidationTab::run_sample() {
  if (!refusal().isEmpty()) return;
  expected_.clear();
  runner_.run(sample());
  view_->show_page(views::ValidationView::Page::plans);
  show_next_ = true;
  emit raise_requested();
}

void ValidationTab::calibrate() {
  // The one on show first: what is run with it must be of the same scenario.
  std::vector<ReportPtr> reports = view_->comparable();
  const auto shown = std::find(reports.begin(), reports.end(), view_->current());
  if (shown != reports.end()) std::rotate(reports.begin(), shown, shown + 1);
  runner_.calibrate(reports);
}

void ValidationTab::add(std::vector<ReportPtr> reports, bool show) {
  reports_.insert(reports_.end(), reports.begin(), reports.end());
  view_->set_reports(reports_, show ? static_cast<int>(reports_.size()) - 1 : -1);
  refresh();
}

void ValidationTab::remove(const QList<int>& rows) {
  std::vector<ReportPtr> kept;
  for (std::size_t i = 0; i < reports_.size(); ++i) {
    if (rows.contains(static_cast<int>(i)))
      runner_.forget(reports_[i]);
    else
      kept.push_back(reports_[i]);
  }
  reports_ = std::move(kept);
  view_->set_reports(reports_);
  refresh();
}

bool ValidationTab::open_files(FileKind kind, const QStringList& paths) {
  if (kind != FileKind::report) return false;
  open(paths.front());
  return true;
}

void ValidationTab::set_model(const ScenarioPtr& scenario) { view_->set_model(scenario ? scenario->model : nullptr); }

void ValidationTab::write(Session& session) const {
  Tab::write(session);
  for (const ReportPtr& made : reports_) session.reports.push_back(*made);
}

void ValidationTab::read(const Session& session) {
  for (const ReportPtr& report : reports_) runner_.forget(report);
  reports_.clear();
  for (const ValidationReport& made : session.reports)
    reports_.push_back(std::make_shared<const ValidationReport>(made));
  view_->set_reports(reports_);
  refresh();
  Tab::read(session);
}

void ValidationTab::add_to(KeptWork& work) const { work.reports = reports_; }

void ValidationTab::open(const QString& path) {
  const auto document = read_json_file(to_path(path));
  if (!document) return voice_.report(document.error(), tr("Open validation report"));
  auto read = read_validations(*document, path.section(u'/', -1).toStdString());
  if (!read) return voice_.report(read.error(), tr("Open validation report"));
  std::vector<ReportPtr> made;
  for (ValidationReport& report : *read) made.push_back(std::make_shared<const ValidationReport>(std::move(report)));
  if (made.empty()) return;
  add(std::move(made), true);
  emit raise_requested();
}

std::vector<ValidationReport> ValidationTab::on_show() const {
  std::vector<ValidationReport> reports;
  if (view_->page() == views::ValidationView::Page::plans) {
    for (const ReportPtr& report : view_->comparable()) reports.push_back(*report);
  } else {
    if (const ReportPtr report = view_->current()) reports.push_back(*report);
    if (const ReportPtr other = view_->compared()) reports.push_back(*other);
  }
  return reports;
}

bool ValidationTab::write_file(const QString& path, const std::string& text, const QString& action) {
  const auto done = write_file_atomically(to_path(path), text);
  if (done)
    voice_.note(tr("Saved %1").arg(path.section(u'/', -1)), path);
  else
    voice_.report(done.error(), action);
  return done.has_value();
}

bool ValidationTab::save(const QString& path) {
  const auto reports = on_show();
  if (reports.empty()) return false;
  const nlohmann::json document = reports.size() == 1 ? write_validation(reports.front()) : write_validations(reports);
  return write_file(path, document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                    tr("Save validation report"));
}

bool ValidationTab::export_report(const QString& path) {
  const auto reports = on_show();
  if (reports.empty()) return false;
  std::string text;
  if (path.endsWith(QStringLiteral(".csv"), Qt::CaseInsensitive)) {
    text = reports.size() == 1 ? write_validation_csv(reports.front()) : write_validations_csv(reports);
  } else {
    if (reports.size() > 1) text = write_summary_markdown(reports) + "\n";
    for (const auto& report : reports) text += write_validation_markdown(report) + "\n";
  }
  return write_file(path, text, tr("Export validation report"));
}

ReportPtr ValidationTab::report_of_picked() const {
  const ResultPtr& result = work_.loader.result();
  if (!result || work_.loader.index() >= result->points.size() || result->scenario->tasks) return nullptr;
  const Scenario& scenario = *result->scenario;
  const std::string label = point_label(*result, work_.loader.index());
  ReportPtr found;
  for (const ReportPtr& report : reports_) {
    if (report->plan != label || report->model != scenario.model->name || report->hardware != scenario.hardware)
      continue;
    if (!found || found->calibrated || !report->calibrated) found = report;
  }
  return found;
}

void ValidationTab::show(const ReportPtr& report) {
  const auto at = std::find(reports_.begin(), reports_.end(), report);
  if (at == reports_.end()) return;
  view_->set_reports(reports_, static_cast<int>(at - reports_.begin()));
  view_->show_page(views::ValidationView::Page::bars);
  emit raise_requested();
}

void ValidationTab::refresh() {
  show_engine();
  const QString reason = refusal_ = refusal();
  const std::size_t plans = reason.isEmpty() ? sample().size() : 0;
  const auto allow = [this](ActionId id, bool on, const QString& why) {
    QAction* action = actions_[id];
    action->setEnabled(on);
    QString tip = action->statusTip();
    if (!action->shortcut().isEmpty())
      tip += QStringLiteral(" (%1)").arg(action->shortcut().toString(QKeySequence::NativeText));
    action->setToolTip(on || why.isEmpty() ? tip : why);
  };
  allow(ActionId::validate, reason.isEmpty(), reason);
  allow(ActionId::validate_sample, plans > 1, reason.isEmpty() ? tr("There is one plan only.") : reason);
  const auto comparable = view_->comparable();
  const bool known =
      std::any_of(comparable.begin(), comparable.end(), [this](const ReportPtr& r) { return runner_.knows(r); });
  allow(ActionId::calibrate, known && !runner_.running(),
        known ? tr("A plan is being run.") : tr("Runs made since the window was opened can calibrate; there is none."));
  for (const ActionId id : {ActionId::save_report, ActionId::export_report_csv, ActionId::export_report_markdown})
    allow(id, !reports_.empty(), tr("There is no report."));
  view_->set_state(reason, running_words());
  panel_.set_validation(report_of_picked(), reason.isEmpty()
                                                ? tr("Not run yet. Validate runs its step on this machine (Ctrl+R).")
                                                : tr("Not run yet. %1").arg(reason));
  panel_.validate_button()->setEnabled(actions_[ActionId::validate]->isEnabled());
  panel_.validate_button()->setToolTip(actions_[ActionId::validate]->toolTip());
}

Tab* validation_tab(const TabParts& parts) { return new ValidationTab(parts); }

}  // namespace turnpoint::app
