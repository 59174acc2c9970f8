// SPDX-License-Identifier: Apache-2.0
// What a method had to say beside its figures: shown wherever the method or one of its plans is.
#pragma once

#include "core/plan/result.h"
#include "views/common/format.h"

namespace turnpoint::views {

/// "Note: a batch of 24 cannot be divided over 16 devices...", a line each; empty where there is nothing to say.
inline QString notes_text(const Result& result) {
  QStringList lines;
  for (const std::string& note : result.notes) lines << QObject::tr("Note: %1").arg(with_groups(to_qt(note)));
  return lines.join(u'\n');
}

/// What the method decided, a line each.
inline QString explanations_text(const Result& result) {
  QStringList lines;
  for (const std::string& said : result.explanations) lines << with_groups(to_qt(said));
  return lines.join(u'\n');
}

}  // namespace turnpoint::views
