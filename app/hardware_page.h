// SPDX-License-Identifier: Apache-2.0
// Keeps the hardware page on what is open, reads measured logs for it and lets this machine be measured: files, whole
// profiles and the probe are only ever touched by the task manager's workers.
#pragma once

#include <QObject>
#include <QStringList>
#include <memory>
#include <string>

#include "core/base/expected.h"
#include "core/hardware/measured/profile_builder.h"
#include "core/probe/measure_machine.h"
#include "views/hardware/hardware_content.h"

namespace turnpoint::views {
class HardwareView;
}

namespace turnpoint::app {

class Document;
class TaskManager;

class HardwarePage : public QObject {
  Q_OBJECT
 public:
  HardwarePage(TaskManager& tasks, const Document& document, views::HardwareView* view, QObject* parent = nullptr);

  /// Reads the files together, shows what is in them and, where they make a profile, stores it in the user's profiles.
  /// What they do not tell comes from `base`; without one from the preset of the device that they name.
  void open_logs(const QStringList& paths, ClusterPtr base = nullptr);
  /// Lets turnpoint-probe time this machine, shows what it found and makes it hardware `local`.
  void measure(MeasureOptions options);
  /// A profile that was made elsewhere and kept at `path` becomes the hardware.
  void show_made(const ClusterPtr& cluster, std::vector<std::string> notes, const std::string& path);
  bool measuring() const { return measuring_; }
  /// Nothing is made ready while nobody looks. A tab behind others counts as visible to Qt, so the dock says it.
  void set_looked_at(bool looked_at);

  /// Where profiles made of logs are kept, so that sessions find them again.
  static QString profile_folder();
  /// Keeps a profile there; its path. Any thread may call.
  static Expected<std::string> store(const Cluster& cluster);

 signals:
  /// A profile lies at `path`, or is kept as "local", and is to become the hardware.
  void profile_made(const QString& path, const QString& title);
  void failed(const turnpoint::Error& error, const QString& action);
  void succeeded(const QString& action);
  void noted(const QString& what, const QString& action);
  void report_shown();

 private:
  struct Reading;
  void follow();
  void finish(const std::shared_ptr<Reading>& reading, const QString& action);
  void show();

  TaskManager& tasks_;
  const Document& document_;
  views::HardwareView* view_;
  std::shared_ptr<const HardwareReport> report_;  ///< of the logs read last
  std::string report_hardware_;                   ///< the profile made of them; empty: none could be made
  QStringList report_files_;
  std::string hardware_;  ///< the scenario's, when it was last looked at
  bool showing_report_ = false, looked_at_ = false, measuring_ = false;
  ClusterPtr shown_cluster_;  ///< what the view shows or is about to
  std::shared_ptr<const HardwareReport> shown_report_;
};

}  // namespace turnpoint::app
