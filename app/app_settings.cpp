// SPDX-License-Identifier: Apache-2.0
#include "app/app_settings.h"

#include <QDir>
#include <QFileInfo>
#include <QLockFile>

namespace turnpoint::app {

namespace {

constexpr int kRecent = 8;
/// Raised when docks change so much that an older layout would look broken.
constexpr const char* kGeometry = "window1/geometry";
constexpr const char* kLayout = "window1/layout";
constexpr const char* kModels = "recent/models";
constexpr const char* kHardware = "recent/hardware";
constexpr const char* kSessions = "recent/sessions";
constexpr const char* kFolder = "files/folder";
constexpr const char* kSample = "start/sample";
constexpr const char* kTheme = "look/theme";
constexpr const char* kShown = "chart/";
constexpr int kLongest_ms = 500;

/// Names that hold wherever the program is started; what is no file (a preset) stays.
QString whole_path(const QString& entry) {
  const QFileInfo file(entry);
  return file.exists() ? QDir::cleanPath(file.absoluteFilePath()) : entry;
}

}  // namespace

AppSettings::AppSettings() : store_(QStringLiteral("turnpoint"), QStringLiteral("turnpoint")) {}
AppSettings::AppSettings(const QString& ini_file) : store_(ini_file, QSettings::IniFormat) {}

QStringList AppSettings::list(const char* key) const { return store_.value(QLatin1String(key)).toStringList(); }

void AppSettings::add(const char* key, const QString& entry) {
  // Another window may have added its own since this one has looked: read, changed and written in one go. Where the
  // lock cannot be had (a read-only home), the list is this window's alone.
  QLockFile lock(store_.fileName() + QStringLiteral(".recent"));
  (void)lock.tryLock(kLongest_ms);
  store_.sync();
  const QString whole = whole_path(entry);
  QStringList entries;
  for (const QString& each : list(key))
    if (whole_path(each) != whole) entries << each;
  entries.prepend(whole);
  while (entries.size() > kRecent) entries.removeLast();
  store_.setValue(QLatin1String(key), entries);
  store_.sync();
}

QStringList AppSettings::recent_models() const { return list(kModels); }
QStringList AppSettings::recent_hardware() const { return list(kHardware); }
QStringList AppSettings::recent_sessions() const { return list(kSessions); }
void AppSettings::add_recent_model(const QString& specification) { add(kModels, specification); }
void AppSettings::add_recent_hardware(const QString& specification) { add(kHardware, specification); }
void AppSettings::add_recent_session(const QString& path) { add(kSessions, path); }

QByteArray AppSettings::geometry() const { return store_.value(QLatin1String(kGeometry)).toByteArray(); }
QByteArray AppSettings::layout() const { return store_.value(QLatin1String(kLayout)).toByteArray(); }
void AppSettings::set_window(const QByteArray& geometry, const QByteArray& layout) {
  store_.setValue(QLatin1String(kGeometry), geometry);
  store_.setValue(QLatin1String(kLayout), layout);
}

QString AppSettings::folder() const { return store_.value(QLatin1String(kFolder)).toString(); }
void AppSettings::set_folder(const QString& folder) { store_.setValue(QLatin1String(kFolder), folder); }
QString AppSettings::theme() const { return store_.value(QLatin1String(kTheme)).toString(); }
void AppSettings::set_theme(const QString& key) { store_.setValue(QLatin1String(kTheme), key); }
bool AppSettings::opens_sample() const { return store_.value(QLatin1String(kSample), true).toBool(); }
void AppSettings::set_opens_sample(bool on) { store_.setValue(QLatin1String(kSample), on); }
bool AppSettings::shown(const QString& key, bool otherwise) const {
  return store_.value(QLatin1String(kShown) + key, otherwise).toBool();
}
void AppSettings::set_shown(const QString& key, bool on) { store_.setValue(QLatin1String(kShown) + key, on); }

}  // namespace turnpoint::app
