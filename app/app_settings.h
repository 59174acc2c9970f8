// SPDX-License-Identifier: Apache-2.0
// What the window remembers between starts; every key is in one place.
#pragma once

#include <QByteArray>
#include <QSettings>
#include <QStringList>

namespace turnpoint::app {

class AppSettings {
 public:
  /// The user's own settings; or a file of its own (tests, --screenshot).
  AppSettings();
  explicit AppSettings(const QString& ini_file);

  QStringList recent_models() const;
  QStringList recent_hardware() const;
  QStringList recent_sessions() const;
  void add_recent_model(const QString& specification);
  void add_recent_hardware(const QString& specification);
  void add_recent_session(const QString& path);

  QByteArray geometry() const;
  QByteArray layout() const;
  void set_window(const QByteArray& geometry, const QByteArray& layout);

  QString folder() const;
  void set_folder(const QString& folder);
  QString theme() const;  ///< key (app/theme.h); empty: nothing was chosen
  void set_theme(const QString& key);
  bool opens_sample() const;
  void set_opens_sample(bool on);
  /// Toggles of the chart by action key.
  bool shown(const QString& key, bool otherwise) const;
  void set_shown(const QString& key, bool on);

 private:
  QStringList list(const char* key) const;
  void add(const char* key, const QString& entry);
  QSettings store_;
};

}  // namespace turnpoint::app
