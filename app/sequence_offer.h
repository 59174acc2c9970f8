// SPDX-License-Identifier: Apache-2.0
// The longest sequence that fits, looked for in the background when somebody asks, and offered.
#pragma once

#include <QObject>

#include "core/search/fitting_batch.h"

namespace turnpoint::app {

class ActionSet;
class Voice;
struct Workspace;

class SequenceOffer : public QObject {
  Q_OBJECT
 public:
  SequenceOffer(Workspace& work, const ActionSet& actions, Voice& voice);

 private:
  void scenario_changed();
  void search();
  void tell(const std::optional<LongestSequence>& found);

  Workspace& work_;
  const ActionSet& actions_;
  Voice& voice_;
};

}  // namespace turnpoint::app
