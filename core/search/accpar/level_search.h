// SPDX-License-Identifier: Apache-2.0
// One level of AccPar: a type for every layer, so that the cut costs least, with the ratio given.
#pragma once

#include <optional>

#include "core/base/progress.h"
#include "core/frontier/problem.h"
#include "core/search/accpar/prices.h"

namespace turnpoint::accpar {

/// Which types a layer may be cut by: all three (AccPar), I and II (HyPar: Song et al., HPCA 2019), the batch for
/// everything but fully connected layers, which are cut by their reduction (One Weird Trick: Krizhevsky 2014), or the
/// batch alone (data parallelism).
enum class Space : std::uint8_t { all, batch_or_reduction, one_weird_trick, batch };
bool allows(Space space, const Layer& layer, Type type);
/// How often a length can be cut in two until one unit is left.
int halvings(double units);
/// How often a layer can be cut in two one after the other, by all types that the space allows: the sum over its
/// lengths, since every cut is of one of them.
int halvings(const Layer& layer, Space space);
/// The refusal of a layer that has too little for its devices: "layer 'fc1' is smaller than its group of devices: WHY".
Error too_small(const Layer& layer, const std::string& why, const char* remedy);

enum class Programme : std::uint8_t {
  /// The paper's dynamic programme along the chain (Eq. 9). Where the network forks, it runs for each of the nine pairs
  /// of types at fork and join on every path, and forks within paths likewise. Of equal choices the lowest type.
  published,
  /// Any graph. Of equal choices the one whose next level costs least. By elimination
  /// (elimination.h), by the engine of
  /// core/frontier where the graph is too wide for that.
  exact,
};

/// Cuts that each half still has before it, down to its deepest device; none where both are devices.
using Levels = std::array<int, 2>;

/// The first half's share of every layer, near `ratio`: with `whole_units` the number of units that is nearest to it
/// from below, and one more if the first half then still finishes earliest (speeds being as the ratio says). A half
/// keeps at least so many units that it can be cut as often as `levels` say, so that every device gets one. 0 where
/// the space does not allow the type or there are too few units for that.
Shares shares_of(const LayerGraph& graph, Space space, double ratio, bool whole_units, Levels levels = {});

/// How the halves will be cut in their turn, where both are alike; decides between choices of equal cost.
struct NextLevel {
  Halves halves;
  Space space = Space::all;
  bool whole_units = false;
  Levels levels{};
};

/// How close the engine is asked to come where a graph is too wide: far below what the cost model can tell.
inline constexpr double kWideGap = 0.003;

struct LevelChoice {
  std::vector<Type> types;
  std::vector<double> shares;  ///< of the first half, by type
  double cost = 0;
  bool exact = true;  ///< false: the engine stopped at a gap, which is below kWideGap unless its work became too much
};

/// Errors: a layer without any type (it is smaller than its group, or the space has none for it; the message names it);
/// by `published` a graph that no sequence of chains and forks makes; cancelled. Graphs whose tables would be larger
/// than `max_table` go to the engine.
Expected<LevelChoice> choose_types(const LayerGraph& graph, const Shares& shares, const Halves& halves,
                                   Programme programme, const std::optional<NextLevel>& next = {},
                                   const RunContext& context = {}, std::size_t max_table = std::size_t(1) << 23);

/// The level as a problem of core/frontier: a node a layer, a configuration for every type with a share (in their
/// order), costs as time, no memory.
frontier::Problem frontier_problem(const LayerGraph& graph, const Shares& shares, const LevelPrices& prices);

}  // namespace turnpoint::accpar
