// SPDX-License-Identifier: Apache-2.0
// The session in the window: what its file keeps, opening and saving it, asking before something is lost, and the copy
// of unsaved work that outlives a window which was killed.
#pragma once

#include <QObject>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "app/kept_work.h"
#include "app/recovery.h"
#include "app/session.h"

class QMainWindow;

namespace turnpoint::app {

class ActionSet;
class AppSettings;
class ChartPage;
class DockLayout;
class Tab;
class Voice;
struct Workspace;

class Sessions : public QObject {
  Q_OBJECT
 public:
  Sessions(Workspace& work, const ActionSet& actions, AppSettings& settings, Voice& voice, ChartPage& chart,
           DockLayout& layout, const std::vector<Tab*>& tabs, QMainWindow& window);

  void open(const QString& path);
  void open_study(int index);
  bool save(const QString& path);
  /// Another beginning: what a session before had to say is not about this.
  void begin_anew();

  /// Whether closing or opening a session asks first where work would be lost. Off at first: nobody may be there.
  void set_asks_before_leaving(bool asks) { asks_ = asks; }
  bool may_close();  ///< else the user is being asked, and the window may be closed later
  void closed();
  /// From now on unsaved work, and what methods have learnt since, is copied to `folder` whenever it has changed, and
  /// what windows that were killed have left there is offered (app/recovery.h).
  void keep_recovery(const QString& folder, int every_ms);
  /// Ends as a clean exit does, but for unsaved work, which stays as a recovery copy; nobody is asked.
  void end_by_signal();

 signals:
  void recent_changed();

 private:
  Session make_session(bool with_answers = true) const;
  void ask_save(std::function<void()> then = {});
  KeptWork work_now() const;
  QStringList unsaved() const;  ///< in words, what a session file would keep and none does
  /// At once where nothing is unsaved; else once the user has saved it or does not want it, or never.
  void before_leaving(std::function<void()> then);
  /// `recovered`: nobody else has it, so it is unsaved as a whole. `then` is called once it is open.
  void take(const Session& session, const QString& path, bool recovered = false, std::function<void()> then = {});
  void write_recovery();
  void told_of_recovery(const Expected<void>& written);
  void end_recovery_writing();
  void drop_recovery();
  void offer_recovery();
  void show_title();

  Workspace& work_;
  const ActionSet& actions_;
  AppSettings& settings_;
  Voice& voice_;
  ChartPage& chart_;
  DockLayout& layout_;
  const std::vector<Tab*>& tabs_;
  QMainWindow& window_;
  QString session_path_;
  KeptWork kept_;                                                  ///< as it was opened or saved
  std::unique_ptr<RecoveryCopy> recovery_;                         ///< null: nothing is unsaved, as far as was looked
  KeptWork recovered_;                                             ///< what it holds
  std::vector<SavedLearning> kept_learning_, recovered_learning_;  ///< the same of what methods have learnt
  bool writes_recovery_ = false;                                   ///< in the background
  std::jthread recovery_writer_;                                   ///< after `recovery_`, which it uses
  QString recovery_folder_;                                        ///< empty: no copy is kept
  bool untouched_ = true, asks_ = false, leaving_ = false;
};

}  // namespace turnpoint::app
