// SPDX-License-Identifier: Apache-2.0
// What a search method is: a record with all that others ask of it. core/search/registry.h lists them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/options.h"
#include "core/base/progress.h"
#include "core/plan/method_traits.h"
#include "core/plan/ratio_change.h"
#include "core/plan/result.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

enum class SearchPass { exact, coarse };

/// A running method's memory: keeps tables between runs in which only costs changed (a slider). Not thread-safe.
class Searcher {
 public:
  virtual ~Searcher() = default;
  virtual Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) = 0;
  /// What coarse runs at other prices will need: after an exact one of this scenario, while nobody waits. Without it
  /// they are coarser. Errors: cancelled; what is done by then is not done again.
  virtual Expected<void> get_ready(const ScenarioPtr&, const RunContext&) { return {}; }
  /// The next run goes on from what Learning::state() was (core/plan/learning.h). For methods that learn alone.
  virtual void resume(std::shared_ptr<const std::string>) {}
};

/// Window and command line know a method by this record alone; only its own sources know its name.
struct Method {
  std::string name = {};         ///< "ft"
  std::string title = {};        ///< "FT frontier tracking"
  std::string short_name = {};   ///< in charts, where the title is long: "FT"; empty: the title
  std::string paper = {};        ///< where it is from
  std::string description = {};  ///< one sentence, without its parameters (described() adds them)
  /// How described() ends where the options' own words would not say it well; empty: those words.
  std::string parameter_words = {};
  bool frontier = false;  ///< draws a line; else one marker
  /// Answers with a placement of a task graph; the only kind of method that accepts one as it is.
  bool places = false;
  bool on_by_default = false;   ///< searched unasked; a placement method where the scenario is a task graph
  bool default_method = false;  ///< what is asked where none is named: one for models, one placement method
  bool own_split = false;       ///< its parameters are splits of the user's own, a row each; one method at most
  bool for_comparison = false;  ///< slow, for those who ask for it by name: "all" leaves it out
  /// Every tensor lies somewhere in each of its plans and is counted, so what they need on one device bounds what they
  /// need on several (core/search/objectives.h). Methods that count as they like do not say so.
  bool holds_everything_once = false;
  std::vector<OptionRecord> options = {};
  /// Key of the option that chooses another method, whose parameters may then stand behind this one's, too, but for
  /// those that this one has a record of itself. Empty: none does.
  std::string_view other_method = {};
  /// Empty if the method accepts this scenario, else the reason it cannot run. Not set: it accepts all.
  std::function<std::string(const Scenario&)> refuses = {};
  /// Whether its plan of this scenario divides devices into parts of unlike size, whose ratios a hand may then move: it
  /// also takes the parameter "by-hand" (moved_by_hand.h), which it never sees itself. Not set: it never does.
  std::function<bool(const Scenario&)> ratio_plans = {};
  /// The ratio plan that it found with these parameters, with parts moved by hand, where more than shares follows from
  /// them: what the parameters with these moves behind them (with_moves_by_hand()) find. Not set: with_moves() says it.
  std::function<Expected<RatioPlan>(const Scenario&, std::string_view parameters, const RatioPlan&, const RatioMoves&,
                                    const RunContext&)>
      moved = {};
  std::function<std::unique_ptr<Searcher>()> make = {};
  /// For methods with parameters ("dp=4:tp=2", "" for none): a searcher, or a usage error saying what they may be.
  /// Whether they suit a scenario is for run() to say. `make` is then not set.
  std::function<Expected<std::unique_ptr<Searcher>>(std::string_view parameters)> make_with = {};
  /// Why these parameters cannot be had on this scenario; empty: they can. Not set: `refuses` says all.
  std::function<std::string(const Scenario&, std::string_view parameters)> refuses_with = {};
  /// Of its results with these parameters, which it accepts. Not set: none.
  std::function<MethodTraits(std::string_view parameters)> traits = {};

  const std::string& label() const { return short_name.empty() ? title : short_name; }
};

}  // namespace turnpoint
