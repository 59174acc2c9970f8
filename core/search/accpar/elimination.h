// SPDX-License-Identifier: Apache-2.0
// The least sum of small tables over variables of few states, by variable elimination, with a second sum that decides
// between choices whose first sums are equal.
//
// core/frontier solves the same problems and more: it keeps whole frontiers, prepares for costs that change and proves
// gaps. A level of AccPar wants one cheapest choice among three states a layer, hundreds of times for unequal trees,
// and has ties to decide; there the preparation alone takes ten times as long as all of this
// (tests/bench/accpar_bench.cpp). Levels whose tables grow too
// large for this go to the engine, which is also the oracle of the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace turnpoint::accpar {

struct PairCost {
  double first = 0, second = 0;
};

/// A table over one or two variables (after eliminations over more); the last variable of the scope runs fastest.
struct Table {
  std::vector<std::uint32_t> scope;  ///< rising
  std::vector<PairCost> costs;
};

struct TableSum {
  std::vector<std::uint32_t> states;  ///< of each variable, at least one
  std::vector<Table> tables;
};

struct EliminationLimits {
  std::size_t max_table = std::size_t(1) << 20;  ///< entries that are visited to eliminate one variable
  std::size_t max_neighbours = SIZE_MAX;  ///< of a variable when it is eliminated; 2: series-parallel graphs only
};

/// The state of every variable; nullopt where a limit is passed. First sums that differ by less than 1e-12 of all costs
/// count as equal; where second sums are equal too, the lowest state is taken, last variable first: on a chain, what a
/// dynamic programme from front to back takes.
std::optional<std::vector<std::uint32_t>> least_sum(const TableSum& problem, const EliminationLimits& limits = {});

}  // namespace turnpoint::accpar
