// SPDX-License-Identifier: Apache-2.0
#include "app/recovery.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/file_path.h"
#include "core/base/json.h"

namespace turnpoint::app {

namespace {

QString lock_of(const QString& copy) { return copy + QStringLiteral(".lock"); }

/// -1: another process has it, or it cannot be made.
int take_lock(const QString& copy) {
  const int lock = ::open(QFile::encodeName(lock_of(copy)).constData(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return -1;
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  ::close(lock);
  return -1;
}

}  // namespace

QString recovery_folder() {
  QString state = qEnvironmentVariable("XDG_STATE_HOME");
  if (!QDir::isAbsolutePath(state)) state = QDir::homePath() + QStringLiteral("/.local/state");
  return state + QStringLiteral("/turnpoint/recovery");
}

Expected<RecoveryCopy> RecoveryCopy::make(const QString& folder) {
  if (!QDir().mkpath(folder)) return bad_input("the folder cannot be made", folder.toStdString());
  const QString stem = folder + u'/' + QString::number(QCoreApplication::applicationPid()) + u'-';
  for (qint64 now = QDateTime::currentMSecsSinceEpoch(), i = 0; i < 8; ++i) {
    QString path = stem + QString::number(now + i) + QStringLiteral(".turnpoint");
    if (const int lock = take_lock(path); lock >= 0) return RecoveryCopy(std::move(path), lock);
  }
  return bad_input("no file can be locked here", folder.toStdString());
}

RecoveryCopy::RecoveryCopy(RecoveryCopy&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RecoveryCopy& RecoveryCopy::operator=(RecoveryCopy&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

RecoveryCopy::~RecoveryCopy() {
  if (lock_ < 0) return;
  // A lock without a copy says nothing to anybody. It goes while it is held, so that nobody else has it by then.
  if (!QFile::exists(path_)) QFile::remove(lock_of(path_));
  ::close(lock_);
}

Expected<void> RecoveryCopy::write(const Session& session, const QString& session_path) {
  nlohmann::json document = write_session(session);
  document["recovery"] = {{"path", session_path.toStdString()}};
  return write_file_atomically(to_path(path_),
                               document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void RecoveryCopy::remove() { QFile::remove(path_); }

std::vector<LeftBehind> left_behind(const QString& folder) {
  std::vector<LeftBehind> left;
  const QDir directory(folder);
  for (const QString& name : directory.entryList({QStringLiteral("*.turnpoint")}, QDir::Files, QDir::Time)) {
    const QString path = directory.filePath(name);
    const int lock = take_lock(path);
    if (lock < 0) continue;
    RecoveryCopy copy(path, lock);
    const auto document = read_json_file(to_path(path));
    auto session = document ? read_session(*document, name.toStdString()) : Expected<Session>(document.error());
    if (!session) {
      copy.remove();
      continue;
    }
    QString session_path;
    if (const auto note = document->find("recovery"); note != document->end() && note->is_object())
      if (const auto at = note->find("path"); at != note->end() && at->is_string())
        session_path = QString::fromStdString(at->get<std::string>());
    left.push_back({std::move(copy), std::move(*session), session_path});
  }
  return left;
}

}  // namespace turnpoint::app
