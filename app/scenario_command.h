// SPDX-License-Identifier: Apache-2.0
// One undoable edit of the scenario: the whole state before and after.
#pragma once

#include <QUndoCommand>

#include "app/document.h"

namespace turnpoint::app {

class ScenarioCommand : public QUndoCommand {
 public:
  /// Commands of equal non-zero gesture merge into one step.
  ScenarioCommand(Document& document, ScenarioState before, ScenarioState after, const QString& text, quint64 gesture);
  void undo() override;
  void redo() override;
  int id() const override { return gesture_ ? 1 : -1; }
  bool mergeWith(const QUndoCommand* other) override;

 private:
  Document& document_;
  ScenarioState before_, after_;
  quint64 gesture_;
  bool first_ = true;
};

}  // namespace turnpoint::app
