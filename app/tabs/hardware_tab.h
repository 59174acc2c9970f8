// SPDX-License-Identifier: Apache-2.0
// The Hardware tab: keeps its page on what is open, reads measured logs for it and lets this machine be measured.
// Files, whole profiles and the probe are only ever touched by the task manager's workers.
#pragma once

#include <QStringList>
#include <memory>
#include <string>

#include "app/tab.h"
#include "core/hardware/measured/profile_builder.h"
#include "core/probe/measure_machine.h"
#include "views/hardware/hardware_view.h"

namespace turnpoint::app {

class HardwareTab : public ViewTab<views::HardwareView> {
 public:
  explicit HardwareTab(const TabParts& parts);

  bool open_files(FileKind kind, const QStringList& paths) override;
  /// Reads the files together, shows what is in them and, where they make a profile, stores it in the user's profiles.
  /// What they do not tell comes from `base`; without one from the preset of the device that they name.
  void open_logs(const QStringList& paths, ClusterPtr base = nullptr);
  /// Lets turnpoint-probe time this machine, shows what it found and makes it hardware `local`.
  void measure(MeasureOptions options);
  bool measuring() const { return measuring_; }

 protected:
  void looked_at_changed(bool looked_at) override;  ///< nothing is made ready while nobody looks

 private:
  struct Reading;
  void ask_measure();
  /// A profile that was made elsewhere and kept at `path` becomes the hardware.
  void show_made(const ClusterPtr& cluster, std::vector<std::string> notes, const std::string& path);
  void follow();
  void finish(const std::shared_ptr<Reading>& reading, const QString& action);
  void show();

  Opener& opener_;
  std::shared_ptr<const HardwareReport> report_;  ///< of the logs read last
  std::string report_hardware_;                   ///< the profile made of them; empty: none could be made
  QStringList report_files_;
  std::string hardware_;  ///< the scenario's, when it was last looked at
  bool showing_report_ = false, looked_at_ = false, measuring_ = false;
  ClusterPtr shown_cluster_;  ///< what the view shows or is about to
  std::shared_ptr<const HardwareReport> shown_report_;
};

}  // namespace turnpoint::app
