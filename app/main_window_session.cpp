// SPDX-License-Identifier: Apache-2.0
// Sessions: what a file keeps, saving it, and asking before something is lost.
#include <QAction>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMessageBox>
#include <QPushButton>

#include "app/app_settings.h"
#include "app/document.h"
#include "app/file_path.h"
#include "app/main_window.h"
#include "app/pick_keeper.h"
#include "app/pinned_searches.h"
#include "app/recovery.h"
#include "app/search_runner.h"
#include "app/studies.h"
#include "app/validation_page.h"
#include "views/common/format.h"
#include "views/common/message_bar.h"
#include "views/notes/notes_view.h"

namespace turnpoint::app {

Session MainWindow::make_session(bool with_answers) const {
  Session session;
  const ScenarioState& state = document_->state();
  session.scenario = {state.model, state.hardware, state.scenario ? state.scenario->settings : Settings()};
  for (const MethodRun& run : runner_->runs())
    if (run.enabled) session.methods.push_back(run.name);
  session.splits = runner_->splits();
  session.pinned = document_->pinned();
  session.searches = pinned_searches_->waiting();
  if (with_answers) session.answers = runner_->answers();
  for (const ReportPtr& made : validation_page_->reports()) session.reports.push_back(*made);
  session.title = notes_view_->title().toStdString();
  session.notes = notes_view_->notes().toStdString();
  const auto& point = document_->selection().point();
  const MethodRun* run =
      point && keeper_->follows() != PickKeeper::Follows::fastest ? runner_->find(point->method) : nullptr;
  if (run && run->result && point->index < run->result->points.size()) {
    session.picked_method = point->method;
    session.picked_memory = static_cast<double>(run->result->points[point->index].memory_bytes);
  }
  session.geometry = saveGeometry().toBase64().toStdString();
  session.layout = layout_state().toBase64().toStdString();
  for (const ActionId id : {ActionId::show_parts, ActionId::show_others, ActionId::show_pinned, ActionId::log_time,
                            ActionId::simulated_clock})
    session.view[actions_[id]->objectName().toStdString()] = actions_[id]->isChecked();
  for (const LinkedView& view : linked_)
    session.views[view.key.toStdString()] =
        QJsonDocument(view.save_state()).toJson(QJsonDocument::Compact).toStdString();
  return session;
}

bool MainWindow::save_session(const QString& path) {
  if (!document_->scenario()) return false;
  const auto saved = app::save_session(make_session(), to_path(path));
  if (!saved) {
    report(saved.error(), tr("Save session"));
    return false;
  }
  session_path_ = QFileInfo(path).absoluteFilePath();
  kept_ = work_now();
  drop_recovery();
  show_title();
  settings_.add_recent_session(path);
  show_recent();
  messages_->clear_errors(tr("Save session"));
  note(tr("Session saved"), path);
  return true;
}

void MainWindow::open_session(const QString& path) {
  const auto loaded = is_study_path(path) ? load_study(path) : load_session(to_path(path));
  if (!loaded) {
    report_about(loaded.error(), tr("Open session"), about_opening());
    return;
  }
  before_leaving([this, session = *loaded, path] { take_session(session, path); });
}

void MainWindow::ask_save_session(std::function<void()> then) {
  ask_save(tr("Save session"), session_path_.isEmpty() ? QStringLiteral("session.turnpoint") : session_path_,
           tr("Turnpoint sessions (*.turnpoint)"), [this, then = std::move(then)](const QString& path) {
             if (save_session(path) && then) then();
           });
}

KeptWork MainWindow::work_now() const {
  KeptWork work;
  const ScenarioState& state = document_->state();
  work.model = state.model;
  work.hardware = state.hardware;
  if (state.scenario) work.settings = state.scenario->settings;
  for (const MethodRun& run : runner_->runs())
    if (run.enabled) work.methods.push_back(run.name);
  work.splits = runner_->splits();
  for (const views::PinnedFrontier& pinned : document_->pinned())
    work.frontiers.emplace(pinned.label.toStdString(), pinned.method);
  for (const PinnedSearch& search : pinned_searches_->waiting()) {
    // A sketch of it is pinned already.
    const std::pair frontier(search.label, search.method);
    if (!work.frontiers.contains(frontier)) work.frontiers.insert(frontier);
  }
  work.reports = validation_page_->reports();
  work.title = notes_view_->title();
  work.notes = notes_view_->notes();
  return work;
}

QStringList MainWindow::unsaved() const {
  return document_->scenario() ? changed_work(kept_, work_now()) : QStringList();
}

void MainWindow::watch_kept_work() {
  // A model or hardware opened in a window where nothing was done yet is where the work begins. In a session that was
  // opened or saved it is a change of that session; nothing is lost by either, since both can be undone.
  connect(document_.get(), &Document::building_changed, this, [this] {
    if (document_->building()) untouched_ = session_path_.isEmpty() && unsaved().isEmpty();
  });
  connect(document_.get(), &Document::built, this, [this] {
    const ScenarioState& state = document_->state();
    if (untouched_ && (state.model != kept_.model || state.hardware != kept_.hardware)) kept_ = work_now();
    show_title();
  });
  // What could not be searched for is not something that the user took away.
  connect(pinned_searches_, &PinnedSearches::failed, this, [this](const Error&, const QString& label) {
    std::erase_if(kept_.frontiers, [&](const auto& frontier) { return frontier.first == label.toStdString(); });
  });
}

void MainWindow::before_leaving(std::function<void()> then) {
  const QStringList changed = asks_before_leaving_ ? unsaved() : QStringList();
  if (changed.isEmpty()) return then();
  if (findChild<QMessageBox*>(QStringLiteral("ask_save"))) return;  // asked already
  auto* box =
      new QMessageBox(QMessageBox::Question, tr("Turnpoint"),
                      session_path_.isEmpty() ? tr("Save this session?")
                                              : tr("Save the changes to %1?").arg(QFileInfo(session_path_).fileName()),
                      QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, this);
  box->setObjectName(QStringLiteral("ask_save"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setInformativeText(tr("Changed since it was opened or saved: %1.").arg(changed.join(QStringLiteral(", "))));
  box->setDefaultButton(QMessageBox::Save);
  box->setEscapeButton(QMessageBox::Cancel);
  connect(box, &QMessageBox::finished, this, [this, then = std::move(then)](int answer) {
    if (answer == QMessageBox::Discard) return then();
    if (answer != QMessageBox::Save) return;
    if (session_path_.isEmpty()) return ask_save_session(then);
    if (save_session(session_path_)) then();
  });
  box->open();
}

}  // namespace turnpoint::app
