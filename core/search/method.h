// SPDX-License-Identifier: Apache-2.0
// Search methods behind one door; window and command line both list this registry.
#pragma once

#include <memory>
#include <string>
#include <string_view>
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
  /// For methods with parameters ("dp=4:tp=2", "" for none): a searcher, or a usage error saying what they may be.
  /// Whether they suit a scenario is for run() to say. `make` is then not set.
  Expected<std::unique_ptr<Searcher>> (*make_with)(std::string_view parameters) = nullptr;
  /// Why these parameters cannot be had on this scenario; empty: they can. Not set: `refuses` says all.
  std::string (*refuses_with)(const Scenario&, std::string_view parameters) = nullptr;
  /// Answers with a placement of a task graph; the only kind of method that accepts one as it is.
  bool places = false;
};

const std::vector<Method>& methods();
/// One of the names that are kept for methods to come (resources/manual/methods.md).
bool is_unbuilt_method(std::string_view name);
Expected<const Method*> find_method(const std::string& name);

/// A method with its parameters, as in `--method ft,manual:dp=4:tp=2`.
struct MethodChoice {
  const Method* method = nullptr;
  std::string parameters;  ///< what followed the name after a colon
};
/// Usage error: no such method.
Expected<MethodChoice> choose_method(std::string_view text);
/// Empty if the method with these parameters accepts this scenario, else the reason. The one door to ask: methods
/// themselves say nothing of scenarios with a task graph, which all but placement methods refuse.
std::string refusal_of(const Method& method, std::string_view parameters, const Scenario& scenario);
/// Usage error where the method does not take these parameters.
Expected<std::unique_ptr<Searcher>> make_searcher(const Method& method, std::string_view parameters = {});

}  // namespace turnpoint
