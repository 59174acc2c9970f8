// SPDX-License-Identifier: Apache-2.0
// Where the frontier is known and none of its plans fits, a smaller batch with which one does is looked for in the
// background and offered.
#pragma once

#include <QObject>

#include "core/scenario/scenario.h"

namespace turnpoint::app {

class Voice;
struct Workspace;

class BatchOffer : public QObject {
  Q_OBJECT
 public:
  BatchOffer(Workspace& work, Voice& voice);

 private:
  void look();
  void withdraw();
  void search();
  void offer(std::int64_t batch);  ///< 0: not even one sample fits

  Workspace& work_;
  Voice& voice_;
  ScenarioPtr looked_;  ///< the scenario that a batch was looked for
  bool offered_ = false;
};

}  // namespace turnpoint::app
