// SPDX-License-Identifier: Apache-2.0
#include "app/scenario_command.h"

namespace turnpoint::app {

ScenarioCommand::ScenarioCommand(Document& document, ScenarioState before, ScenarioState after, const QString& text,
                                 quint64 gesture)
    : QUndoCommand(text),
      document_(document),
      before_(std::move(before)),
      after_(std::move(after)),
      gesture_(gesture) {}

void ScenarioCommand::undo() { document_.apply(before_, false); }

void ScenarioCommand::redo() {
  // Only the push itself belongs to a moving hand; a redo by key is a step of its own.
  document_.apply(after_, first_ && gesture_ != 0);
  first_ = false;
}

bool ScenarioCommand::mergeWith(const QUndoCommand* other) {
  const auto* next = static_cast<const ScenarioCommand*>(other);
  if (next->gesture_ != gesture_) return false;
  after_ = next->after_;
  return true;
}

}  // namespace turnpoint::app
