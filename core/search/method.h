// SPDX-License-Identifier: Apache-2.0
// Search methods behind one door; window and command line both list this registry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/result.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

enum class SearchPass { exact, coarse };

/// A running method's memory: keeps tables between runs in which only costs changed (a slider). Not thread-safe.
class Searcher {
 public:
  virtual ~Searcher() = default;
  virtual Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) = 0;
};

struct Method {
  std::string name;         ///< "ft"
  std::string title;        ///< "FT frontier tracking"
  std::string paper;        ///< where it is from
  std::string description;  ///< one sentence
  bool frontier = false;    ///< draws a line; else one marker
  std::vector<OptionRecord> options;
  /// Empty if the method accepts this scenario, else the reason it cannot run.
  std::string (*refuses)(const Scenario&) = nullptr;
  std::unique_ptr<Searcher> (*make)() = nullptr;
};

const std::vector<Method>& methods();
Expected<const Method*> find_method(const std::string& name);

}  // namespace turnpoint
