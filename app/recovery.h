// SPDX-License-Identifier: Apache-2.0
// Copies of unsaved work that outlive a window which was killed. Each window has one of its own and holds a lock beside
// it, which the kernel releases whatever ends the process: a copy whose lock is free was left behind.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "app/session.h"

namespace turnpoint::app {

/// $XDG_STATE_HOME/turnpoint/recovery, without which ~/.local/state is the home of states.
QString recovery_folder();

/// A copy and its lock. Movable; the lock goes with it.
class RecoveryCopy {
 public:
  /// A new one for this window; nothing is written yet. Bad input: the folder cannot be written.
  static Expected<RecoveryCopy> make(const QString& folder);
  RecoveryCopy(RecoveryCopy&& other) noexcept;
  RecoveryCopy& operator=(RecoveryCopy&& other) noexcept;
  ~RecoveryCopy();  ///< releases the lock; the copy stays where it was not removed

  /// Atomic. `session_path`: the file that the session was opened from; may be empty.
  Expected<void> write(const Session& session, const QString& session_path);
  void remove();
  const QString& path() const { return path_; }

 private:
  friend std::vector<struct LeftBehind> left_behind(const QString& folder);
  RecoveryCopy(QString path, int lock) : path_(std::move(path)), lock_(lock) {}
  QString path_;
  int lock_ = -1;
};

struct LeftBehind {
  RecoveryCopy copy;
  Session session;
  QString session_path;  ///< empty: it was never saved
};
/// What windows that are gone have left, the newest first; held by the caller until it lets go of them. Copies that
/// cannot be read are removed.
std::vector<LeftBehind> left_behind(const QString& folder);

}  // namespace turnpoint::app
