// SPDX-License-Identifier: Apache-2.0
// What a session brings into the window; the sample studies; the parallelism tab's files.
#include <QAction>
#include <QDockWidget>
#include <QFileInfo>
#include <QImage>
#include <QJsonDocument>
#include <QJsonObject>
#include <QPainter>
#include <QSvgGenerator>
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/app_settings.h"
#include "app/document.h"
#include "app/graph_tab.h"
#include "app/main_window.h"
#include "app/pick_keeper.h"
#include "app/pinned_searches.h"
#include "app/search_runner.h"
#include "app/studies.h"
#include "app/validation_page.h"
#include "core/base/json.h"
#include "views/graph/graph_canvas.h"
#include "views/graph/graph_view.h"
#include "views/graph/task_canvas.h"
#include "views/graph/task_graph_view.h"
#include "views/memory/memory_view.h"
#include "views/notes/notes_view.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_view.h"
#include "views/timeline/timeline_view.h"

namespace turnpoint::app {

void MainWindow::open_study(int index) { open_session(study_path(studies()[static_cast<std::size_t>(index)])); }

void MainWindow::raise_view(const QString& key) {
  for (QDockWidget* dock : view_docks_) {
    if (dock->objectName() != key) continue;
    dock->show();
    dock->raise();
  }
}

void MainWindow::take_session(const Session& session, const QString& path, bool recovered, std::function<void()> then) {
  // Model and hardware are opened first; only when both are there does the rest replace what the window shows.
  const bool study = is_study_path(path);
  runner_->offer(session.answers);
  document_->open(session.scenario, [this, session, path, study, recovered, then = std::move(then)] {
    // A study is saved under a name of the user's, and so is what was recovered before it had one.
    session_path_ = study || path.isEmpty() ? QString() : QFileInfo(path).absoluteFilePath();
    auto pinned = session.pinned;
    // Sessions of before pins had models: it was pinned beside the model that the session holds.
    for (views::PinnedFrontier& frontier : pinned)
      if (frontier.model.empty()) frontier.model = document_->scenario()->model->name;
    document_->set_pinned(std::move(pinned));
    for (const std::string& split : session.splits)
      if (const auto added = runner_->add_split(split, false); !added) report(added.error(), tr("Open session"));
    if (!session.methods.empty()) runner_->set_enabled_methods(session.methods);
    if (!session.picked_method.empty()) keeper_->want(session.picked_method, session.picked_memory);
    for (const ActionId id : {ActionId::show_parts, ActionId::show_others, ActionId::show_pinned, ActionId::log_time,
                              ActionId::simulated_clock})
      if (const auto at = session.view.find(actions_[id]->objectName().toStdString()); at != session.view.end())
        actions_[id]->setChecked(at->second);
    std::vector<ReportPtr> reports;
    for (const ValidationReport& made : session.reports)
      reports.push_back(std::make_shared<const ValidationReport>(made));
    validation_page_->set_reports(std::move(reports));
    for (const LinkedView& view : linked_)
      if (const auto at = session.views.find(view.key.toStdString()); at != session.views.end())
        view.restore_state(QJsonDocument::fromJson(QByteArray::fromStdString(at->second)).object());
    if (!session.searches.empty() && !session.view.contains("show_pinned"))
      actions_[ActionId::show_pinned]->setChecked(true);
    notes_view_->set_notes(QString::fromStdString(session.title), QString::fromStdString(session.notes));
    if (!session.layout.empty()) restore_layout(QByteArray::fromBase64(QByteArray::fromStdString(session.layout)));
    if (!session.front.empty()) raise_view(QString::fromStdString(session.front));
    pinned_searches_->set(session.searches);
    if (!session_path_.isEmpty()) settings_.add_recent_session(path);
    // What was recovered is nowhere else, so all of it is unsaved.
    kept_ = recovered ? KeptWork() : work_now();
    show_title();
    show_recent();
    show_chart();
    if (then) then();
  });
}

void MainWindow::ask_export_parallelism(const QString& suffix) {
  ask_save(tr("Export parallelism"), QStringLiteral("parallelism.") + suffix,
           tr("%1 files (*.%2)").arg(suffix.toUpper(), suffix),
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
  ask_save(tr("Export picture"), name + u'.' + suffix, tr("%1 files (*.%2)").arg(suffix.toUpper(), suffix),
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
