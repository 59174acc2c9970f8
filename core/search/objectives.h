// SPDX-License-Identifier: Apache-2.0
// What a user wants of a frontier: the fastest plan under a memory limit (mini-time), the fewest devices on which some
// plan fits (mini-parallelism), the fastest plan for a range of device counts with its price (profile), the largest
// batch that fits each of them (largest-batch, in largest_batch.h).
//
// Source: TensorOpt, arXiv 2004.10856, the three options of find_strategy (resources/manual/mathematics.md, 1.7). They
// ask methods, whichever they are, for their points and choose among them; command line and window share this.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/search/method/method.h"

namespace turnpoint {

enum class Objective { frontier, mini_time, mini_parallelism, profile, largest_batch };
const char* to_string(Objective objective);  ///< "mini-time", the spelling of command line and files
/// Usage error that lists the objectives.
Expected<Objective> parse_objective(std::string_view name);

/// A method as an objective needs it, with whatever parameters it was given already bound. It may refuse a scenario by
/// `refuses` or by a usage error of run().
struct Contender {
  std::string name;  ///< of the method, its parameters behind a colon
  std::function<std::string(const Scenario&)> refuses;
  std::function<std::unique_ptr<Searcher>()> make;  ///< to be called only where it does not refuse
  bool holds_everything_once = false;               ///< as of Method
  bool frontier = false;                            ///< as of Method: a coarse pass is a sketch of an exact one
};
/// `method` must outlive it, as those of the registry do.
Contender contender(const Method& method, const std::string& parameters = {});

/// The one plan mini-time asks for: the fastest that fits, or the one that needs least memory where none fits. The
/// point keeps its plan. `gap` tells how much faster any other plan within the limit could still be.
ResultPtr fastest_within_limit(const ResultPtr& result);

/// Devices x price per device-hour x hours; nullopt where the price is not known. In the currency of the price.
std::optional<double> price_of(const Scenario& scenario, double time_s);
/// The same per sample of the batch: what to compare where batches differ, and what "cheapest" means.
std::optional<double> price_per_sample(const Scenario& scenario, double time_s);

/// The counts a cluster can be cut to, rising, the last one its own: every count inside a node, whole nodes above; a
/// mixed cluster has one. `doubling`: 1, 2, 4, ... inside a node, then 1, 2, 4, ... nodes, and the whole.
std::vector<int> every_count(const Cluster& cluster);
std::vector<int> doubling_counts(const Cluster& cluster);
/// The scenario on the first `devices` devices of its cluster.
Expected<ScenarioPtr> on_devices(const ScenarioPtr& scenario, int devices);

Expected<ResultPtr> mini_time(const Contender& method, const ScenarioPtr& scenario, const RunContext& context);

/// The fewest devices, at most those of the scenario's cluster, on which some plan fits, and the fastest plan there.
/// Fewer devices can need *less* memory than more (a batch that three devices cannot divide is computed by each of them
/// whole), so nothing is concluded from one count about the next: all are tried, rising, until one fits. Only counts
/// that could not hold one copy of everything even if nothing were ever stored twice are left out. `tried`: the counts
/// that were searched. Where nothing fits, the plan with the least memory of all counts, fewest devices on ties.
/// `exact` is false where a search before could not rule out that some plan fits, as one that gave up on its count of
/// devices cannot; a note names such counts. Infeasible only where it gave up on all of them.
Expected<ResultPtr> mini_parallelism(const Contender& method, const ScenarioPtr& scenario, const RunContext& context,
                                     std::vector<int>* tried = nullptr);

/// What is asked at one count of devices. A usage error: the method refuses this count; infeasible: it gives up.
using CountSearch = std::function<Expected<ResultPtr>(const ScenarioPtr& here, const RunContext& context)>;
/// The answers at `counts`, in their order, marked as of `objective`; none at counts that are refused, and a result
/// without points whose note says why where the method gives up (unanswered.h). `found` is called after each, on the
/// calling thread; may be empty. Usage error: all are refused. Other errors end it, and so does a stop.
Expected<std::vector<ResultPtr>> at_every_count(Objective objective, const Contender& method,
                                                const ScenarioPtr& scenario, const std::vector<int>& counts,
                                                const RunContext& context, const CountSearch& search,
                                                const std::function<void(const ResultPtr&)>& found = {});

/// mini-time for every one of `counts` that the method does not refuse, as at_every_count() has it.
Expected<std::vector<ResultPtr>> profile(const Contender& method, const ScenarioPtr& scenario,
                                         const std::vector<int>& counts, const RunContext& context,
                                         const std::function<void(const ResultPtr&)>& found = {});

}  // namespace turnpoint
