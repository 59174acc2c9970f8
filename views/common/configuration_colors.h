// SPDX-License-Identifier: Apache-2.0
// Which of the eight configuration colours a configuration has. A configuration keeps its colour while the user moves
// along a frontier; the seven largest by time have one of their own, all others share the last one.
#pragma once

#include <QHash>
#include <QObject>
#include <QString>
#include <array>
#include <memory>
#include <vector>

namespace turnpoint::views {

/// Shared by all views that colour by configuration, so that they agree. Lives on the interface thread.
class ConfigurationColors {
 public:
  static constexpr int kOwn = 7;    ///< slots 0..6 belong to one configuration each
  static constexpr int kOther = 7;  ///< the shared slot

  struct Share {
    QString configuration;
    double time_s = 0;
  };

  /// Forgets everything when the model (by name and source) is not the one it was.
  void set_model(const QString& key);
  /// Assigns slots for a plan: `shares` largest first, each configuration once. Calling it again changes nothing.
  void update(const std::vector<Share>& shares);
  int slot(const QString& configuration) const { return active_.value(configuration, kOther); }

 private:
  QString model_;
  QHash<QString, int> remembered_, active_;
  std::array<quint64, kOwn> last_used_{};
  quint64 tick_ = 0;
};

/// The colours that belong to one selection: all views linked by it agree without knowing of each other.
std::shared_ptr<ConfigurationColors> colors_of(QObject* selection);

}  // namespace turnpoint::views
