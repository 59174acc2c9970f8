// SPDX-License-Identifier: Apache-2.0
// What the window writes for others: the formats of core/export, chart and views as pictures.
#include <QAction>
#include <QFileInfo>
#include <QImage>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QSvgGenerator>
#include <cmath>

#include "app/document.h"
#include "app/file_path.h"
#include "app/graph_tab.h"
#include "app/main_window.h"
#include "app/parallelism_page.h"
#include "app/plan_loader.h"
#include "app/search_runner.h"
#include "app/task_manager.h"
#include "core/base/json.h"
#include "core/export/format.h"
#include "views/common/format.h"
#include "views/common/message_bar.h"
#include "views/frontier/frontier_chart.h"
#include "views/graph/graph_canvas.h"
#include "views/graph/graph_view.h"
#include "views/graph/task_canvas.h"
#include "views/graph/task_graph_view.h"
#include "views/memory/memory_view.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_view.h"
#include "views/plan/plan_panel.h"
#include "views/timeline/timeline_view.h"

namespace turnpoint::app {

namespace {

QString filter_of(const QString& suffix) { return QObject::tr("%1 files (*.%2)").arg(suffix.toUpper(), suffix); }

}  // namespace

void MainWindow::build_export_menu(QMenu* file) {
  using Id = ActionId;
  export_menu_ = file->addMenu(actions_[Id::export_menu]->icon(), tr("Export"));
  export_menu_->setToolTipsVisible(true);  // a disabled one says why
  for (const bool plans : {true, false}) {
    for (const ExportFormat& format : export_formats())
      if (format.for_plans() == plans) export_menu_->addAction(actions_[format]);
    export_menu_->addSeparator();
  }
  for (const Id id :
       {Id::export_chart_svg, Id::export_chart_png, Id::export_chart_pdf, Id::export_graph_svg, Id::export_graph_png})
    export_menu_->addAction(actions_[id]);
}

void MainWindow::connect_exports() {
  using Id = ActionId;
  const auto on = [this](QAction* action, auto call) { connect(action, &QAction::triggered, this, call); };
  on(actions_[Id::export_menu], [this] { export_menu_->popup(mapToGlobal(QPoint(width() / 3, 64))); });
  connect(plan_panel_->export_button(), &QPushButton::clicked, this, [this] {
    QPushButton* button = plan_panel_->export_button();
    export_menu_->popup(button->mapToGlobal(QPoint(0, button->height())));
  });
  for (const ExportFormat& format : export_formats()) on(actions_[format], [this, &format] { ask_export(format); });
  for (const auto& [id, suffix] :
       {std::pair(Id::export_chart_svg, "svg"), {Id::export_chart_png, "png"}, {Id::export_chart_pdf, "pdf"}})
    on(actions_[id], [this, suffix = QString::fromLatin1(suffix)] { ask_export_chart(suffix); });
  const auto ask_for = [this](QWidget* view, const char* name) {
    return [this, view, name](const QString& suffix) { ask_export_picture(view, QString::fromLatin1(name), suffix); };
  };
  const auto ask_graph = ask_for(tabs_.graph, "graph");
  on(actions_[Id::export_graph_svg], [ask_graph] { ask_graph(QStringLiteral("svg")); });
  on(actions_[Id::export_graph_png], [ask_graph] { ask_graph(QStringLiteral("png")); });
  connect(tabs_.graph->tasks(), &views::TaskGraphView::export_requested, this, ask_graph);
  connect(tabs_.timeline, &views::TimelineView::export_requested, this, ask_for(tabs_.timeline, "timeline"));
  if (const ExportFormat* trace = find_format("trace")) tabs_.timeline->add_export(actions_[*trace]);
  connect(tabs_.memory, &views::MemoryView::export_requested, this, ask_for(tabs_.memory, "memory"));
  connect(parallelism_page_, &ParallelismPage::export_requested, this, &MainWindow::ask_export_parallelism);
}

void MainWindow::show_result_exports(bool there) {
  const QString none = there ? QString() : tr("There is no result yet.");
  for (const ExportFormat& format : export_formats())
    if (!format.for_plans()) actions_.allow(actions_[format], none);
  for (const ActionId id : {ActionId::export_chart_png, ActionId::export_chart_svg, ActionId::export_chart_pdf})
    actions_.allow(id, none);
  for (const ActionId id : {ActionId::export_graph_svg, ActionId::export_graph_png})
    actions_.allow(id, document_->scenario() ? QString() : tr("Nothing is open."));
}

void MainWindow::show_plan_exports() {
  const MethodRun* run = picked_run();
  const QString none = !run                 ? tr("No plan is picked: click a point of the chart.")
                       : run->result->plans ? QString()
                                            : tr("This method gives figures without a plan.");
  actions_.allow(ActionId::copy_point, none);
  const PlanKind kind =
      none.isEmpty() ? run->result->plans->kind(document_->selection().point()->index) : PlanKind::sharding;
  for (const ExportFormat& format : export_formats()) {
    if (!format.for_plans()) continue;
    const bool refused = none.isEmpty() && !format.accepts(kind);
    actions_.allow(actions_[format],
                   refused ? views::to_qt(refusal_of(format, kind, FormatNames::names)) + u'.' : none);
  }
}

void MainWindow::ask_export(const ExportFormat& format) {
  ask_save(tr("Export"), views::to_qt(format.file), filter_of(views::to_qt(format.suffix())),
           [this, &format](const QString& path) { export_to(format, path); });
}

void MainWindow::export_to(const ExportFormat& format, const QString& path) {
  ExportSource source;
  const MethodRun* subject = runner_->subject();
  if (subject && subject->result) source.results.push_back(subject->result);
  for (const MethodRun& run : runner_->runs())
    if (&run != subject && run.enabled && run.result) source.results.push_back(run.result);
  if (const auto& point = document_->selection().point()) {
    const MethodRun* run = runner_->find(point->method);
    if (run) source.picked = run->result;
    source.point = point->index;
  }
  // Numbered by target, so that two exports do not supersede each other.
  auto written = std::make_shared<std::optional<Expected<void>>>();
  tasks_->start(
      QStringLiteral("export:") + path, tr("Export %1").arg(QFileInfo(path).fileName()),
      [&format, source, written, target = to_path(path)](const RunContext&) {
        written->emplace(export_to_file(format, source, target));
      },
      [this, written, path](TaskOutcome) {
        if (!written->has_value()) return;
        if (!**written) return report((*written)->error(), tr("Export"));
        messages_->clear_errors(tr("Export"));
        note(tr("Exported %1").arg(QFileInfo(path).fileName()), path);
      });
}

void MainWindow::ask_export_chart(const QString& suffix) {
  ask_save(tr("Export chart"), QStringLiteral("chart.") + suffix, filter_of(suffix),
           [this](const QString& path) { export_chart(path); });
}

bool MainWindow::export_chart(const QString& path) {
  const auto ends = [&](const char* suffix) { return path.endsWith(QLatin1String(suffix), Qt::CaseInsensitive); };
  const bool done = ends(".svg")   ? chart_->save_svg(path)
                    : ends(".pdf") ? chart_->save_pdf(path)
                                   : chart_->save_png(path);
  if (done)
    note(tr("Exported %1").arg(QFileInfo(path).fileName()), path);
  else
    report(bad_input("the file cannot be written", path.toStdString()), tr("Export chart"));
  return done;
}

void MainWindow::ask_export_parallelism(const QString& suffix) {
  ask_save(tr("Export parallelism"), QStringLiteral("parallelism.") + suffix, filter_of(suffix),
           [this](const QString& path) { export_parallelism(path); });
}

bool MainWindow::export_parallelism(const QString& path) {
  const views::ParallelismChart* chart = parallelism_view_->chart();
  bool done = false;
  if (path.endsWith(QStringLiteral(".svg"), Qt::CaseInsensitive)) {
    done = chart->save_svg(path);
  } else {
    const auto text = views::parallelism_csv(chart->data()).toStdString();
    done = write_file_atomically(std::filesystem::path(path.toStdU16String()), text).has_value();
  }
  if (done)
    note(tr("Exported %1").arg(path.section(u'/', -1)), path);
  else
    report(bad_input("the file cannot be written", path.toStdString()), tr("Export parallelism"));
  return done;
}

void MainWindow::ask_export_picture(QWidget* view, const QString& name, const QString& suffix) {
  ask_save(tr("Export picture"), name + u'.' + suffix, filter_of(suffix),
           [this, view](const QString& path) { export_picture(view, path); });
}

bool MainWindow::export_picture(QWidget* view, const QString& path) {
  // The graph is exported whole, the others as they are on screen.
  const bool of_tasks = tabs_.graph->shows_tasks();
  const QSize size = view != tabs_.graph ? view->size()
                     : of_tasks          ? tabs_.graph->tasks()->canvas()->picture_size()
                                         : tabs_.graph->operators()->canvas()->picture_size();
  const auto paint = [&](QPainter& painter) {
    if (view == tabs_.timeline) tabs_.timeline->paint_to(painter, size);
    if (view == tabs_.memory) tabs_.memory->paint_to(painter, size);
    if (view != tabs_.graph) return;
    if (of_tasks)
      tabs_.graph->tasks()->paint_to(painter, size);
    else
      tabs_.graph->operators()->paint_to(painter, size);
  };
  bool done = false;
  if (path.endsWith(QStringLiteral(".svg"), Qt::CaseInsensitive)) {
    QSvgGenerator svg;
    svg.setFileName(path);
    svg.setSize(size);
    svg.setViewBox(QRect(QPoint(), size));
    QPainter painter;
    done = painter.begin(&svg);
    if (done) paint(painter), done = painter.end();
  } else {
    constexpr double kScale = 2, kMostPixels = 30e6;
    const double scale = std::min(kScale, std::sqrt(kMostPixels / (double(size.width()) * size.height())));
    QImage image(size * scale, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(scale);
    image.fill(view->palette().color(QPalette::Base));
    QPainter painter(&image);
    paint(painter);
    painter.end();
    done = image.save(path);
  }
  if (done)
    note(tr("Exported %1").arg(path.section(u'/', -1)), path);
  else
    report(bad_input("the file cannot be written", path.toStdString()), tr("Export picture"));
  return done;
}

}  // namespace turnpoint::app
