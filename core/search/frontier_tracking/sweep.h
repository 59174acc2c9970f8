// SPDX-License-Identifier: Apache-2.0
// One frontier over several numbers of micro-batches: the lower envelope of theirs, from one search for each number,
// side by side. A survey of all, plans of the hull with their bounds, shows where each may be of use. The search of the
// whole batch goes on from there, and then that of the others for what improves on all of that by more than 0.3 %,
// which is what is certain of the whole; at the turning point 0.1 % is sought. Plans slower than any of the whole batch
// are there for small devices, and not considered (Result::slowest_considered_s) where faster ones fit. A number whose
// computing alone takes longer than any plan of the whole batch is then left out, neither priced nor surveyed: of the
// third number and those after it, but for the largest, and where looking takes time.
//
// Under a slider the numbers are searched that add to the considered part of the frontier, and the next one. Where the
// hand rests all numbers are priced, and those that count there are searched from then on.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/frontier/pareto.h"
#include "core/frontier/solver.h"
#include "core/search/method/method.h"

namespace turnpoint::search {

/// How far below what all have found a number's plans may still lie without a search of its own: what an eye on the
/// chart cannot tell apart.
constexpr double kOpenGap = 0.003;
/// The same at the turning point, which people take: above the share of a step's time that a run repeats to.
constexpr double kOpenWhereItTurns = 0.001;

/// When an exact search may end before its whole frontier is proven.
struct Enough {
  /// What may be left of Result::gap; nullopt: over several numbers what an eye on the chart cannot tell apart, of one
  /// nothing.
  std::optional<double> gap = std::nullopt;
  double seconds = 0;  ///< wall time, from which only a first answer goes on; 0: none
};

using Deadline = std::optional<std::chrono::steady_clock::time_point>;
/// None where nothing limits the time.
Deadline deadline_of(const Enough& enough, std::chrono::steady_clock::time_point start);
/// As SolveOptions::time_limit_s has it.
double seconds_until(const Deadline& deadline);

/// What a sweep wants of the search of one number, and what that one says.
struct Sweep {
  enum class Ask {
    search,  ///< as the pass says
    survey,  ///< plans of the hull with a bound, quickly; a search of the same scenario may go on from there
    within,  ///< after a search: the fastest plan within one memory, and what is certain of it
    moves,   ///< after these: which plans coarse passes at other prices will begin with. No points
    forget,  ///< no search follows a survey. No points
    bound,   ///< nothing but what is certain at these prices. No points
    floor,   ///< the same before anything was searched: how long computing alone takes. No points
    prices,  ///< the prices of the coarse pass that follows, and what earlier plans cost at them (kept). No points
  };
  Ask ask = Ask::search;
  double share = 1;               ///< of the work that a search alone may take; 1: it is alone
  double enough_gap = 0;          ///< as SolveOptions has it
  Deadline until = {};            ///< of exact searches and surveys
  frontier::CostList known = {};  ///< what all have found: only what improves on it is looked for
  double slowest = std::numeric_limits<double>::infinity();  ///< seconds: slower plans are not looked for
  frontier::CostPoint within = {};  ///< the memory that `within` asks about, and the time that all achieve there
  bool of_use = true;               ///< moves are searched over it, when it gets ready
  frontier::CostList kept = {};     ///< said by a search
  frontier::Work work = {};         ///< likewise: what it took
  std::shared_ptr<frontier::Orders> orders = nullptr;  ///< of elimination, that all share; read when a searcher is made
  /// Said by a search: its coarse answer was made of what earlier ones used, as a slider's moves are.
  bool moved = false;
};

/// Whether an answer to one is an answer to the other.
inline bool same_scenario(const Scenario& a, const Scenario& b) {
  return a.model == b.model && a.cluster == b.cluster && a.settings == b.settings;
}

/// How a method has micro-batches.
struct MicroBatching {
  int otherwise = 1;     ///< the number where none is given
  bool follows = false;  ///< its searchers do as the sweep says that they are part of; else they know of none
  bool may_end = false;  ///< its exact searches can be told what is enough
  /// A searcher for a number of micro-batches. The sweep outlives it; null: it is alone.
  std::function<std::unique_ptr<Searcher>(int micro_batches, Sweep* sweep, const Enough& enough)> make;
};

/// Searches all numbers that `numbers_of` says.
std::unique_ptr<Searcher> make_sweep(std::string method, MicroBatching how, const Enough& enough,
                                     std::function<std::vector<int>(const Scenario&)> numbers_of);

}  // namespace turnpoint::search
