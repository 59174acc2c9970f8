// SPDX-License-Identifier: Apache-2.0
#include "app/sessions.h"

#include <QAction>
#include <QDateTime>
#include <QFileInfo>
#include <QMainWindow>
#include <QMessageBox>
#include <QTimer>
#include <algorithm>
#include <new>
#include <utility>

#include "app/actions.h"
#include "app/app_settings.h"
#include "app/chart_page.h"
#include "app/dock_layout.h"
#include "app/file_path.h"
#include "app/recent_name.h"
#include "app/studies.h"
#include "app/tab.h"
#include "app/voice.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {
constexpr int kTitleEvery_ms = 1000;
}

Sessions::Sessions(Workspace& work, const ActionSet& actions, AppSettings& settings, Voice& voice, ChartPage& chart,
                   DockLayout& layout, const std::vector<Tab*>& tabs, QMainWindow& window)
    : QObject(&window),
      work_(work),
      actions_(actions),
      settings_(settings),
      voice_(voice),
      chart_(chart),
      layout_(layout),
      tabs_(tabs),
      window_(window) {
  const auto on = [this](ActionId id, auto call) { connect(actions_[id], &QAction::triggered, this, call); };
  on(ActionId::open_session, [this] {
    voice_.ask_open(tr("Open session"), tr("Turnpoint sessions (*.turnpoint);;All files (*)"),
                    [this](const QString& path) { open(path); });
  });
  on(ActionId::save_session, [this] {
    if (session_path_.isEmpty()) return ask_save();
    save(session_path_);
  });
  on(ActionId::save_session_as, [this] { ask_save(); });
  auto* marker = new QTimer(this);
  marker->start(kTitleEvery_ms);
  connect(marker, &QTimer::timeout, this, &Sessions::show_title);
  connect(&work_.document, &Document::scenario_changed, this, &Sessions::show_title);
  connect(&work_.pinned_searches, &PinnedSearches::failed, &voice_, &Voice::report);
  // A model or hardware opened in a window where nothing was done yet is where the work begins. In a session that was
  // opened or saved it is a change of that session; nothing is lost by either, since both can be undone.
  connect(&work_.document, &Document::building_changed, this, [this] {
    if (work_.document.building()) untouched_ = session_path_.isEmpty() && unsaved().isEmpty();
  });
  connect(&work_.document, &Document::built, this, [this] {
    const ScenarioState& state = work_.document.state();
    if (untouched_ && (state.model != kept_.model || state.hardware != kept_.hardware)) kept_ = work_now();
    show_title();
  });
  // What could not be searched for is not something that the user took away.
  connect(&work_.pinned_searches, &PinnedSearches::failed, this, [this](const Error&, const QString& label) {
    std::erase_if(kept_.frontiers, [&](const auto& frontier) { return frontier.first == label.toStdString(); });
  });
  show_title();
}

void Sessions::begin_anew() {
  work_.pinned_searches.set({});
  for (Tab* tab : tabs_) tab->begin_anew();
  session_path_.clear();
  kept_ = work_now();
  kept_learning_ = work_.runner.learning();
  show_title();
}

bool Sessions::may_close() {
  if (leaving_ || !asks_ || unsaved().isEmpty()) return true;
  before_leaving([this] {
    leaving_ = true;
    window_.close();
  });
  return false;
}

void Sessions::closed() {
  if (!recovery_folder_.isEmpty()) drop_recovery();
}

void Sessions::end_by_signal() {
  end_recovery_writing();
  write_recovery();
  end_recovery_writing();
  // Whoever ends the program from outside is not there to be asked; the next start offers what was unsaved.
  asks_ = false;
  recovery_folder_.clear();
  recovery_.reset();
  window_.close();
}

void Sessions::open_study(int index) { open(study_path(studies()[static_cast<std::size_t>(index)])); }

void Sessions::open(const QString& path) {
  const auto loaded = is_study_path(path) ? load_study(path) : load_session(to_path(path));
  if (!loaded) {
    voice_.report_about(loaded.error(), tr("Open session"), Voice::about_opening());
    return;
  }
  before_leaving([this, session = *loaded, path] { take(session, path); });
}

Session Sessions::make_session(bool with_answers) const {
  Session session;
  const ScenarioState& state = work_.document.state();
  session.scenario = {state.model, state.hardware, state.scenario ? state.scenario->settings : Settings()};
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled) session.methods.push_back(run.name);
  session.splits = work_.runner.splits();
  session.pinned = work_.document.pinned();
  session.searches = work_.pinned_searches.waiting();
  if (with_answers) session.answers = work_.runner.answers();
  if (with_answers) session.learning = work_.runner.learning();
  const auto& point = work_.document.selection().point();
  const MethodRun* run =
      point && work_.keeper.follows() != PickKeeper::Follows::fastest ? work_.runner.find(point->method) : nullptr;
  if (run && run->result && point->index < run->result->points.size()) {
    session.picked_method = point->method;
    session.picked_memory = static_cast<double>(run->result->points[point->index].memory_bytes);
  }
  session.geometry = window_.saveGeometry().toBase64().toStdString();
  session.layout = layout_.state().toBase64().toStdString();
  for (const ActionId id : ChartPage::kToggles)
    session.view[actions_[id]->objectName().toStdString()] = actions_[id]->isChecked();
  for (const Tab* tab : tabs_) tab->write(session);
  return session;
}

bool Sessions::save(const QString& path) {
  if (!work_.document.scenario()) return false;
  const Session session = make_session();
  const auto saved = save_session(session, to_path(path));
  if (!saved) {
    voice_.report(saved.error(), tr("Save session"));
    return false;
  }
  session_path_ = QFileInfo(path).absoluteFilePath();
  kept_ = work_now();
  kept_learning_ = session.learning;
  drop_recovery();
  show_title();
  settings_.add_recent_session(path);
  emit recent_changed();
  voice_.bar().clear_errors(tr("Save session"));
  voice_.note(tr("Session saved"), path);
  return true;
}

void Sessions::ask_save(std::function<void()> then) {
  voice_.ask_save(tr("Save session"), session_path_.isEmpty() ? QStringLiteral("session.turnpoint") : session_path_,
                  tr("Turnpoint sessions (*.turnpoint)"), [this, then = std::move(then)](const QString& path) {
                    if (save(path) && then) then();
                  });
}

KeptWork Sessions::work_now() const {
  KeptWork work;
  const ScenarioState& state = work_.document.state();
  work.model = state.model;
  work.hardware = state.hardware;
  if (state.scenario) work.settings = state.scenario->settings;
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled) work.methods.push_back(run.name);
  work.splits = work_.runner.splits();
  for (const views::PinnedFrontier& pinned : work_.document.pinned())
    work.frontiers.emplace(pinned.label.toStdString(), pinned.method);
  for (const PinnedSearch& search : work_.pinned_searches.waiting()) {
    // A sketch of it is pinned already.
    const std::pair frontier(search.label, search.method);
    if (!work.frontiers.contains(frontier)) work.frontiers.insert(frontier);
  }
  for (const Tab* tab : tabs_) tab->add_to(work);
  return work;
}

QStringList Sessions::unsaved() const {
  return work_.document.scenario() ? changed_work(kept_, work_now()) : QStringList();
}

void Sessions::before_leaving(std::function<void()> then) {
  const QStringList changed = asks_ ? unsaved() : QStringList();
  if (changed.isEmpty()) return then();
  if (window_.findChild<QMessageBox*>(QStringLiteral("ask_save"))) return;  // asked already
  auto* box =
      new QMessageBox(QMessageBox::Question, tr("Turnpoint"),
                      session_path_.isEmpty() ? tr("Save this session?")
                                              : tr("Save the changes to %1?").arg(QFileInfo(session_path_).fileName()),
                      QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, &window_);
  box->setObjectName(QStringLiteral("ask_save"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setInformativeText(tr("Changed since it was opened or saved: %1.").arg(changed.join(QStringLiteral(", "))));
  box->setDefaultButton(QMessageBox::Save);
  box->setEscapeButton(QMessageBox::Cancel);
  connect(box, &QMessageBox::finished, this, [this, then = std::move(then)](int answer) {
    if (answer == QMessageBox::Discard) return then();
    if (answer != QMessageBox::Save) return;
    if (session_path_.isEmpty()) return ask_save(then);
    if (save(session_path_)) then();
  });
  box->open();
}

void Sessions::take(const Session& session, const QString& path, bool recovered, std::function<void()> then) {
  // Model and hardware are opened first; only when both are there does the rest replace what the window shows.
  const bool study = is_study_path(path);
  work_.runner.offer(session.answers);
  work_.runner.offer_learning(session.learning);
  work_.document.open(session.scenario, [this, session, path, study, recovered, then = std::move(then)] {
    // A study is saved under a name of the user's, and so is what was recovered before it had one.
    session_path_ = study || path.isEmpty() ? QString() : QFileInfo(path).absoluteFilePath();
    auto pinned = session.pinned;
    // Sessions of before pins had models: it was pinned beside the model that the session holds.
    for (views::PinnedFrontier& frontier : pinned)
      if (frontier.model.empty()) frontier.model = work_.document.scenario()->model->name;
    work_.document.set_pinned(std::move(pinned));
    for (const std::string& split : session.splits)
      if (const auto added = work_.runner.add_split(split, false); !added)
        voice_.report(added.error(), tr("Open session"));
    if (!session.methods.empty()) work_.runner.set_enabled_methods(session.methods);
    if (!session.picked_method.empty()) work_.keeper.want(session.picked_method, session.picked_memory);
    for (const ActionId id : ChartPage::kToggles)
      if (const auto at = session.view.find(actions_[id]->objectName().toStdString()); at != session.view.end())
        actions_[id]->setChecked(at->second);
    for (Tab* tab : tabs_) tab->read(session);
    if (!session.searches.empty() && !session.view.contains("show_pinned"))
      actions_[ActionId::show_pinned]->setChecked(true);
    if (!session.layout.empty()) layout_.restore(QByteArray::fromBase64(QByteArray::fromStdString(session.layout)));
    if (!session.front.empty()) layout_.raise(QString::fromStdString(session.front));
    work_.pinned_searches.set(session.searches);
    if (!session_path_.isEmpty()) settings_.add_recent_session(path);
    // What was recovered is nowhere else, so all of it is unsaved.
    kept_ = recovered ? KeptWork() : work_now();
    kept_learning_ = recovered ? std::vector<SavedLearning>() : session.learning;
    show_title();
    emit recent_changed();
    chart_.show_results();
    if (then) then();
  });
}

void Sessions::keep_recovery(const QString& folder, int every_ms) {
  recovery_folder_ = folder;
  auto* timer = new QTimer(this);
  timer->start(every_ms);
  connect(timer, &QTimer::timeout, this, [this] { write_recovery(); });
  offer_recovery();
}

namespace {

/// States are never changed, so the same ones are the same objects.
bool same_states(const std::vector<SavedLearning>& a, const std::vector<SavedLearning>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SavedLearning& one, const SavedLearning& other) {
    return one.method == other.method && one.state == other.state;
  });
}

}  // namespace

void Sessions::write_recovery() {
  if (recovery_folder_.isEmpty() || writes_recovery_) return;
  Session session = make_session(false);
  // Nobody is asked about what was learnt when a window closes, but hours of it may go with one that is killed.
  session.learning = work_.runner.learning();
  if (unsaved().isEmpty() && same_states(session.learning, kept_learning_)) return drop_recovery();
  const KeptWork now = work_now();
  if (recovery_ && changed_work(recovered_, now).isEmpty() && same_states(session.learning, recovered_learning_))
    return;
  if (!recovery_) {
    auto copy = RecoveryCopy::make(recovery_folder_);
    // Said once: a home that cannot be written is no reason to be told so every minute.
    if (!copy) {
      recovery_folder_.clear();
      return voice_.report(copy.error(), tr("Keeping a recovery copy"));
    }
    recovery_ = std::make_unique<RecoveryCopy>(std::move(*copy));
  }
  recovered_ = now;
  recovered_learning_ = session.learning;
  if (session.learning.empty()) {
    told_of_recovery(recovery_->write(session, session_path_));
    return;
  }
  // States of learning are tens of megabytes: nobody shall wait for them.
  writes_recovery_ = true;
  recovery_writer_ = std::jthread([this, session = std::move(session), path = session_path_] {
    Expected<void> written;
    try {
      written = recovery_->write(session, path);
    } catch (const std::bad_alloc&) {
      written = bad_input("there is no memory left to write what was learnt", recovery_->path().toStdString());
    } catch (const std::exception& failure) {
      // Out of a thread it would end the program, with the very work that the copy is for.
      written = bad_input(std::string("what was learnt cannot be written: ") + failure.what(),
                          recovery_->path().toStdString());
    }
    // The destructor waits for this thread, so that `this` is there to be posted to.
    QMetaObject::invokeMethod(
        this,
        [this, written] {
          writes_recovery_ = false;
          told_of_recovery(written);
        },
        Qt::QueuedConnection);
  });
}

void Sessions::told_of_recovery(const Expected<void>& written) {
  if (written) return;
  recovered_ = KeptWork();
  recovered_learning_.clear();
  voice_.report(written.error(), tr("Keeping a recovery copy"));
}

/// A copy that is being written is whole then.
void Sessions::end_recovery_writing() {
  if (recovery_writer_.joinable()) recovery_writer_.join();
  writes_recovery_ = false;
}

void Sessions::drop_recovery() {
  end_recovery_writing();
  if (recovery_) recovery_->remove();
  recovery_.reset();
}

void Sessions::offer_recovery() {
  for (LeftBehind& each : left_behind(recovery_folder_)) {
    auto left = std::make_shared<LeftBehind>(std::move(each));
    QString name = recent_name(left->session_path.isEmpty() ? QString::fromStdString(left->session.scenario.model)
                                                            : left->session_path);
    if (name.startsWith(QStringLiteral("builtin:"))) name = name.section(u':', 1);
    views::Message message;
    message.kind = views::Message::Kind::warning;
    message.what = tr("Turnpoint did not close properly: unsaved work on %1 is still there").arg(name);
    message.where = tr("From %1; it is kept until it is restored or this message is dismissed")
                        .arg(QFileInfo(left->copy.path()).lastModified().toString(Qt::ISODate).replace(u'T', u' '));
    message.action = tr("Restore");
    message.act = [this, left] {
      before_leaving([this, left] {
        // Until it is written again under this window's own name, the old copy is the only one.
        take(left->session, left->session_path, true, [this, left] {
          write_recovery();
          end_recovery_writing();
          if (recovery_ && QFileInfo::exists(recovery_->path())) left->copy.remove();
        });
      });
    };
    message.dismissed = [left] { left->copy.remove(); };
    voice_.bar().show_message(std::move(message));
  }
}

void Sessions::show_title() {
  const ScenarioState& state = work_.document.state();
  QString title = QStringLiteral("Turnpoint");
  if (state.scenario)
    title = tr("%1 on %2")
                .arg(QString::fromStdString(state.scenario->model->name),
                     QString::fromStdString(state.scenario->cluster->title)) +
            QStringLiteral("[*] \u2014 ") + title;
  if (state.scenario && !session_path_.isEmpty())
    title = QFileInfo(session_path_).completeBaseName() + QStringLiteral(": ") + title;
  window_.setWindowTitle(title);
  window_.setWindowModified(!unsaved().isEmpty());
}

}  // namespace turnpoint::app
