// SPDX-License-Identifier: Apache-2.0
// What a session brings into the window; the sample studies.
#include <QAction>
#include <QDockWidget>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <utility>

#include "app/app_settings.h"
#include "app/document.h"
#include "app/main_window.h"
#include "app/pick_keeper.h"
#include "app/pinned_searches.h"
#include "app/search_runner.h"
#include "app/studies.h"
#include "app/validation_page.h"
#include "views/notes/notes_view.h"

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

}  // namespace turnpoint::app
