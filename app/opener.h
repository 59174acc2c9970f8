// SPDX-License-Identifier: Apache-2.0
// Opens what the user names: by its path, from a dialog, dropped on the window.
#pragma once

#include <QObject>
#include <QStringList>
#include <string>
#include <vector>

class QMimeData;

namespace turnpoint {
class ModelSource;
}

namespace turnpoint::app {

class ActionSet;
class AppSettings;
class Sessions;
class Tab;
class Voice;
enum class FileKind;
struct Workspace;

class Opener : public QObject {
  Q_OBJECT
 public:
  Opener(Workspace& work, const ActionSet& actions, AppSettings& settings, Voice& voice, Sessions& sessions,
         const std::vector<Tab*>& tabs);

  /// What a path is decides its content: session, hardware profile, else a model. Built-in names are models.
  void open_path(const QString& path);
  /// The same where a hardware profile was asked for: anything else is refused, and called by what it is.
  void open_hardware_file(const QString& path);
  /// Model and hardware together, as from the command line or a sample; empty parts take the sample's.
  void open_scenario(const std::string& model, const std::string& hardware, int devices);
  void open_sample(int index);
  /// Measured logs, read together in the background; where they make a profile it becomes the hardware.
  void open_logs(const QStringList& paths);
  /// A profile that was made here, called `title`, becomes the hardware.
  void open_profile(const QString& path, const QString& title);
  /// Of several files the first that is no log; logs are read together.
  bool open_dropped(const QMimeData& dropped);  ///< false: there were no files

 signals:
  void recent_changed();

 private:
  void open_settings(const QString& path);  ///< of a training framework: its split as one of the user's own
  void open_in_tab(FileKind kind, const QStringList& paths);
  void remember_opened();
  /// Once for every model that is opened: what its file did not leave to the user.
  void say_what_was_taken();

  Workspace& work_;
  AppSettings& settings_;
  Voice& voice_;
  Sessions& sessions_;
  const std::vector<Tab*>& tabs_;
  const ModelSource* said_of_ = nullptr;  ///< whose taken settings have been said
};

}  // namespace turnpoint::app
