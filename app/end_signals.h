// SPDX-License-Identifier: Apache-2.0
// SIGTERM, SIGHUP and SIGINT as a Qt signal: a handler may do next to nothing, the window has work to save.
#pragma once

#include <QObject>

namespace turnpoint::app {

/// One at a time. While it lives, the first such signal arrives as ended(); a second one ends the process at once.
class EndSignals : public QObject {
  Q_OBJECT
 public:
  explicit EndSignals(QObject* parent = nullptr);
  ~EndSignals() override;

 signals:
  void ended();

 private:
  int read_end_ = -1;
};

}  // namespace turnpoint::app
