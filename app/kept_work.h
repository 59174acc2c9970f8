// SPDX-License-Identifier: Apache-2.0
// What would be lost if the window closed now: the part of a session file that is the user's work. How the window looks
// and what is picked is kept in the file as well, but nobody would miss it.
#pragma once

#include <QStringList>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/validation_runner.h"
#include "core/scenario/scenario.h"
#include "core/search/batch_study.h"
#include "core/search/variation.h"

namespace turnpoint::app {

struct KeptWork {
  std::string model, hardware;
  Settings settings;
  std::vector<std::string> methods, splits;
  std::multiset<std::pair<std::string, std::string>> frontiers;  ///< label, method; pinned, or searched for to be so
  std::vector<ReportPtr> reports;
  std::shared_ptr<const BatchStudy> study;  ///< with answers found here; null: as it came with the program
  std::shared_ptr<const Variation> sweep;   ///< null: none was run
  QString title, notes;
};

/// In words, what of `now` is not as in `before`; empty: nothing.
QStringList changed_work(const KeptWork& before, const KeptWork& now);

}  // namespace turnpoint::app
