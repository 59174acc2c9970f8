// SPDX-License-Identifier: Apache-2.0
// What the window does with turnpoint-probe: this machine measured, plans run on it.
#include <QAction>
#include <QDockWidget>
#include <QFileInfo>
#include <QPushButton>

#include "app/document.h"
#include "app/hardware_page.h"
#include "app/main_window.h"
#include "app/measure_dialog.h"
#include "app/validation_page.h"
#include "app/validation_runner.h"
#include "core/hardware/probe_client.h"
#include "views/common/format.h"
#include "views/common/message_bar.h"
#include "views/hardware/hardware_view.h"
#include "views/plan/plan_panel.h"
#include "views/validation/validation_view.h"

namespace turnpoint::app {

void MainWindow::build_validation() {
  using Id = ActionId;
  validation_view_ = new views::ValidationView(
      {actions_[Id::validate], actions_[Id::validate_sample], actions_[Id::calibrate], actions_[Id::open_report],
       actions_[Id::save_report], actions_[Id::export_report_csv], actions_[Id::export_report_markdown]},
      this);
  validation_view_->set_selection(&document_->selection());
  validation_page_ =
      new ValidationPage(*document_, *runner_, *loader_, *validation_runner_, validation_view_, actions_, this);
  linked_.push_back(make_validation_tab(validation_view_));
}

void MainWindow::connect_validation() {
  using Id = ActionId;
  ValidationPage* page = validation_page_;
  const auto on = [this](Id id, auto call) { connect(actions_[id], &QAction::triggered, this, call); };
  on(Id::measure, [this] { ask_measure(); });
  on(Id::validate, [page] { page->run(); });
  on(Id::validate_sample, [page] { page->run_sample(); });
  on(Id::calibrate, [page] { page->calibrate(); });
  on(Id::open_report, [this] {
    ask_open(tr("Open validation report"), tr("Validation reports (*.json);;All files (*)"), &MainWindow::open_path);
  });
  on(Id::save_report, [this] { ask_save_report(QStringLiteral("json")); });
  on(Id::export_report_csv, [this] { ask_save_report(QStringLiteral("csv")); });
  on(Id::export_report_markdown, [this] { ask_save_report(QStringLiteral("md")); });
  connect(hardware_view_, &views::HardwareView::measure_requested, actions_[Id::measure], &QAction::trigger);
  QAction* validate = actions_[Id::validate];
  connect(plan_panel_->validate_button(), &QPushButton::clicked, validate, &QAction::trigger);
  const auto show_picked = [this, validate](const ReportPtr& report, const QString& how) {
    plan_panel_->set_validation(report, how);
    plan_panel_->validate_button()->setEnabled(validate->isEnabled());
    plan_panel_->validate_button()->setToolTip(validate->toolTip());
  };
  connect(page, &ValidationPage::picked_report, this, show_picked);
  connect(plan_panel_, &views::PlanPanel::report_wanted, page, [page] { page->show(page->report_of_picked()); });
  page->look_again();
  connect(page, &ValidationPage::failed, this, &MainWindow::report);
  connect(validation_runner_.get(), &ValidationRunner::report_made, this,
          [this] { messages_->clear_errors(ValidationRunner::tr("Run this plan here")); });
  connect(validation_runner_.get(), &ValidationRunner::calibrated, this,
          [this] { messages_->clear_errors(ValidationRunner::tr("Calibrate")); });
  connect(page, &ValidationPage::shown, this, [this] { raise_view(QStringLiteral("validation")); });
  connect(page, &ValidationPage::written, this,
          [this](const QString& path) { note(tr("Saved %1").arg(QFileInfo(path).fileName()), path); });
  connect(page, &ValidationPage::profile_made, this, [this](const std::shared_ptr<const CalibratedProfile>& made) {
    hardware_page_->show_made(made->cluster, made->notes, made->path);
    raise_view(QStringLiteral("validation"));  // where the error is seen to fall
  });
}

void MainWindow::ask_save_report(const QString& suffix) {
  const bool json = suffix == u"json";
  ask_save(json ? tr("Save validation report") : tr("Export validation report"), QStringLiteral("validation.") + suffix,
           tr("%1 files (*.%2)").arg(suffix.toUpper(), suffix), [this, json](const QString& path) {
             json ? validation_page_->save(path) : validation_page_->export_report(path);
           });
}

void MainWindow::ask_measure() {
  if (hardware_page_->measuring()) {
    show_hardware_page();
    return;
  }
  if (const auto probe = find_probe(); !probe) {
    report(probe.error(), tr("Measure this machine"));
    return;
  }
  const ScenarioPtr& scenario = document_->scenario();
  ModelPtr model = scenario ? scenario->model : nullptr;
  if (model && model->operators.empty()) model = nullptr;
  auto* dialog = new MeasureDialog(std::move(model), this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QDialog::accepted, this, [this, dialog] { hardware_page_->measure(dialog->options()); });
  dialog->open();
}

}  // namespace turnpoint::app
