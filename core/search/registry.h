// SPDX-License-Identifier: Apache-2.0
// All search methods behind one door; window and command line both list this registry. It knows the methods, no method
// knows it (tests/house): a new one is a folder of its own and a line in registry.cpp, or, if it places tasks, in
// placement/placement_registry.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/ratio_change.h"
#include "core/search/method/method.h"

namespace turnpoint {

/// In the order in which they are listed and drawn; colours and shapes follow it too (views/common/method_style.h).
const std::vector<Method>& methods();
/// Usage error with a hint: no such method.
Expected<const Method*> find_method(const std::string& name);
/// What is searched with where nobody names a method: on models, or on task graphs.
const Method& default_method(bool of_tasks = false);
/// The one whose parameters are splits of the user's own.
const Method& split_method();

/// A method with its parameters, as in `--method ft,manual:dp=4:tp=2`.
struct MethodChoice {
  const Method* method = nullptr;
  std::string parameters;  ///< what followed the name after a colon
};
/// Usage error: no such method.
Expected<MethodChoice> choose_method(std::string_view text);
/// Whether such a search ends at a wall time, so that the next one may find other plans.
bool ends_by_time(const std::string& name, std::string_view parameters);
/// Of results of the method with this name and these parameters; none where there is no such method.
MethodTraits traits_of(const std::string& name, std::string_view parameters);
/// Whether the method, or the one whose splits it takes over, cuts layers by types I, II and III, so that its plans are
/// spoken of in these, also where parts are equal and the plan splits operators.
bool cuts_by_types(const std::string& name, std::string_view parameters);
/// The parameters of the variant whose plan is that of these parameters with its parts moved by hand: of a method with
/// ratio plans.
std::string with_moves_by_hand(std::string_view parameters, const RatioMoves& moves);
/// What that variant finds where these parameters found this ratio plan, without searching for it again. Errors: those
/// of with_moves(); cancelled.
Expected<RatioPlan> plan_moved_by_hand(const std::string& method, std::string_view parameters, const Scenario& scenario,
                                       const RatioPlan& plan, const RatioMoves& moves, const RunContext& context);
/// How the method's parameters are written, for people: "zero=1|2|3"; the moves of a ratio plan's parts among them.
std::vector<std::string> words_of_parameters(const Method& method);
/// What may stand behind the method's name, for a line that completes it: "zero=1", "by-hand=".
std::vector<std::string> completions_of_parameters(const Method& method);
/// One sentence on what the method does, with its parameters.
std::string described(const Method& method);
/// Empty if the method with these parameters accepts this scenario, else the reason. The one door to ask: methods
/// themselves say nothing of scenarios with a task graph, which all but placement methods refuse.
std::string refusal_of(const Method& method, std::string_view parameters, const Scenario& scenario);
/// Its results carry the method's traits. Usage error where the method does not take these parameters.
Expected<std::unique_ptr<Searcher>> make_searcher(const Method& method, std::string_view parameters = {});

}  // namespace turnpoint
