// SPDX-License-Identifier: Apache-2.0
#include "app/exports.h"

#include <QAction>
#include <QFileInfo>
#include <QMenu>
#include <QPushButton>

#include "app/actions.h"
#include "app/chart_page.h"
#include "app/engine_dialog.h"
#include "app/file_path.h"
#include "app/voice.h"
#include "app/workspace.h"
#include "core/export/format.h"
#include "views/common/format.h"
#include "views/plan/plan_panel.h"

namespace turnpoint::app {

Exports::Exports(Workspace& work, const ActionSet& actions, Voice& voice, ChartPage& chart, views::PlanPanel& panel,
                 QWidget* window)
    : QObject(window),
      work_(work),
      actions_(actions),
      voice_(voice),
      chart_(chart),
      menu_(new QMenu(window)),
      engines_(new EngineDialog(work, *this, window)) {
  using Id = ActionId;
  menu_->setTitle(tr("Export"));
  menu_->setIcon(actions_[Id::export_menu]->icon());
  menu_->setToolTipsVisible(true);  // a disabled one says why
  menu_->addAction(actions_[Id::engine_dialog]);
  menu_->addSeparator();
  for (const bool plans : {true, false}) {
    for (const ExportFormat& format : export_formats())
      if (format.for_plans() == plans) menu_->addAction(actions_[format]);
    menu_->addSeparator();
  }
  for (const Id id :
       {Id::export_chart_svg, Id::export_chart_png, Id::export_chart_pdf, Id::export_graph_svg, Id::export_graph_png})
    menu_->addAction(actions_[id]);
  const auto on = [this](QAction* action, auto call) { connect(action, &QAction::triggered, this, call); };
  on(actions_[Id::engine_dialog], [this] {
    engines_->show();
    engines_->raise();
    engines_->activateWindow();
  });
  on(actions_[Id::export_menu], [this, window] { menu_->popup(window->mapToGlobal(QPoint(window->width() / 3, 64))); });
  connect(panel.export_button(), &QPushButton::clicked, this,
          [this, button = panel.export_button()] { menu_->popup(button->mapToGlobal(QPoint(0, button->height()))); });
  for (const ExportFormat& format : export_formats()) on(actions_[format], [this, &format] { ask_export(format); });
  for (const auto& [id, suffix] :
       {std::pair(Id::export_chart_svg, "svg"), {Id::export_chart_png, "png"}, {Id::export_chart_pdf, "pdf"}})
    on(actions_[id], [this, suffix = QString::fromLatin1(suffix)] {
      voice_.ask_save(tr("Export chart"), QStringLiteral("chart.") + suffix, filter_of(suffix),
                      [this](const QString& path) { export_chart(path); });
    });
  connect(&chart_, &ChartPage::changed, this, [this](const views::ChartData& data) {
    const QString none = data.subject() ? QString() : tr("There is no result yet.");
    for (const ExportFormat& format : export_formats())
      if (!format.for_plans()) actions_.allow(actions_[format], none);
  });
  connect(&work_.document, &Document::model_changed, this, &Exports::show_plans);
  connect(&work_.document.selection(), &views::SelectionModel::point_changed, this, &Exports::show_plans);
  connect(&work_.runner, &SearchRunner::result_changed, this, [this] {
    if (!work_.runner.more_follow()) show_plans();
  });
  connect(&work_.loader, &PlanLoader::plan_changed, this, &Exports::show_plans);
  show_plans();
}

void Exports::show_plans() {
  const MethodRun* run = work_.picked_run();
  const QString none = why_no_plan();
  actions_.allow(ActionId::copy_point, none);
  engines_->follow();
  const PlanKind kind =
      none.isEmpty() ? run->result->plans->kind(work_.document.selection().point()->index) : PlanKind::sharding;
  for (const ExportFormat& format : export_formats()) {
    if (!format.for_plans()) continue;
    const bool refused = none.isEmpty() && !format.accepts(kind);
    actions_.allow(actions_[format],
                   refused ? views::to_qt(refusal_of(format, kind, FormatNames::names)) + u'.' : none);
  }
}

QString Exports::why_no_plan() const {
  const MethodRun* run = work_.picked_run();
  if (!run) return tr("No plan is picked: click a point of the chart.");
  return run->result->plans ? QString() : tr("This method gives figures without a plan.");
}

void Exports::ask_export(const ExportFormat& format) {
  voice_.ask_save(tr("Export"), views::to_qt(format.file), filter_of(views::to_qt(format.suffix())),
                  [this, &format](const QString& path) { export_to(format, path); });
}

ExportSource Exports::source() const {
  ExportSource source;
  const MethodRun* subject = work_.runner.subject();
  if (subject && subject->result) source.results.push_back(subject->result);
  for (const MethodRun& run : work_.runner.runs())
    if (&run != subject && run.enabled && run.result) source.results.push_back(run.result);
  if (const auto& point = work_.document.selection().point()) {
    const MethodRun* run = work_.runner.find(point->method);
    if (run) source.picked = run->result;
    source.point = point->index;
  }
  return source;
}

void Exports::ask_export(const ExportFormat& format, const ExportSource& source) {
  voice_.ask_save(tr("Export"), views::to_qt(format.file), filter_of(views::to_qt(format.suffix())),
                  [this, &format, source](const QString& path) { export_to(format, path, source); });
}

void Exports::export_to(const ExportFormat& format, const QString& path, const ExportSource& source) {
  // Numbered by target, so that two exports do not supersede each other.
  struct Written {
    std::optional<Expected<void>> done;
    std::vector<std::string> remarks;
  };
  auto written = std::make_shared<Written>();
  work_.tasks.start(
      QStringLiteral("export:") + path, tr("Export %1").arg(QFileInfo(path).fileName()),
      [&format, source, written, target = to_path(path)](const RunContext&) {
        written->done.emplace(export_to_file(format, source, target));
        if (*written->done) written->remarks = export_remarks(format, source);
      },
      [this, written, path](TaskOutcome) {
        if (!written->done) return;
        if (!*written->done) return voice_.report(written->done->error(), tr("Export"));
        voice_.bar().clear_errors(tr("Export"));
        for (const std::string& remark : written->remarks)
          voice_.note(tr("%1 does not say all of the plan").arg(QFileInfo(path).fileName()), views::to_qt(remark));
        voice_.note(tr("Exported %1").arg(QFileInfo(path).fileName()), path);
      });
}

bool Exports::export_chart(const QString& path) {
  const bool done = chart_.save(path);
  voice_.tell_written(done, path, tr("Export chart"));
  return done;
}

}  // namespace turnpoint::app
