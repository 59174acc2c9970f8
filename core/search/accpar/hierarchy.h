// SPDX-License-Identifier: Apache-2.0
// AccPar on a whole tree of devices: every part is cut in two, types and a ratio are chosen for the cut, tensors shrink
// by them, and both halves are cut in their turn (AccPar, sections 5.1 to 5.3).
//
// Cost of an assignment: what its cuts exchange plus what the slower half needs after each, down to the devices, which
// pay for their FLOP. (The price of a level, by which types are chosen, has the halves' FLOP in it as the paper has
// it; summed over the levels they would be counted once per level.) By volume devices pay nothing, and the cost is the
// sum of the levels' volumes.
#pragma once

#include <string_view>

#include "core/search/accpar/device_tree.h"
#include "core/search/accpar/level_search.h"

namespace turnpoint::accpar {

enum class Objective : std::uint8_t {
  volume,  ///< elements that one half exchanges; speeds and links are not looked at
  time,    ///< seconds
};

enum class Ratio : std::uint8_t {
  equal,  ///< one half each
  paper,  ///< the paper's formula
  exact,  ///< from the real functions of the share: balanced, or what minimises the sum over layers if that is better
};

struct Options {
  Space space = Space::all;
  Objective objective = Objective::time;
  Programme programme = Programme::exact;
  /// Alike halves get one half each in any case. By volume, which no share minimises but 0, unlike halves are cut as
  /// their speeds are, unless the ratio is to be equal.
  Ratio ratio = Ratio::exact;
  bool whole_units = true;       ///< false: lengths are cut as real numbers
  double bytes_per_element = 2;  ///< bf16
  bool along_spine = false;      ///< HyPar: types are chosen as if the network were the chain that spine() keeps
  std::optional<double> first_ratio = {};  ///< of the first cut, as a person sets it

  // The methods as published.
  static Options accpar();
  static Options hypar();  ///< types I and II, equal halves, by volume, chains
  static Options one_weird_trick();
  static Options data_parallel();
};

/// One cut of one part of the tree, with the tensors that are left there.
struct Cut {
  std::uint32_t part = 0;               ///< of the bisection
  double ratio = 0.5;                   ///< of the first half
  std::vector<Type> types;              ///< of every layer
  std::vector<double> shares;           ///< of the first half, whole units considered
  double price = 0;                     ///< of the level, by the objective
  int rounds = 1;                       ///< of types and ratio in turn
  std::array<std::uint32_t, 2> next{};  ///< cuts of the halves, kDevice where a half is a device
};
inline constexpr std::uint32_t kDevice = 0xffffffff;

struct Assignment {
  std::vector<Cut> cuts;  ///< the whole tree's first; equal parts with equal tensors share theirs
  bool exact = true;      ///< false: some level was too wide, and its types are good only
};

/// Errors: a broken graph or tree, a ratio outside (0, 1), bytes that are not above zero, a layer smaller than its
/// group, what choose_types() refuses, cancelled.
Expected<Assignment> search(const LayerGraph& graph, const Bisection& devices, const Options& options,
                            const RunContext& context = {});

struct AssignmentCost {
  double total = 0;
  double compute = 0, exchange = 0;  ///< their parts, along the slower halves
  std::vector<double> levels;        ///< exchanged at each level, along the slower halves
};
/// Of an assignment that search() made, by any options, under the objective of these. Errors: none but those of
/// search().
AssignmentCost cost_of(const LayerGraph& graph, const Bisection& devices, const Assignment& assignment,
                       Objective objective, double bytes_per_element);

/// What one device holds in the end, a layer graph of its own, by its place in Bisection::order.
LayerGraph held_by(const LayerGraph& graph, const Bisection& devices, const Assignment& assignment,
                   std::uint32_t place);

/// The best of AccPar's assignment and those of HyPar, One Weird Trick and data parallelism, all priced as `options`
/// say: level by level the cheapest choice is not always the cheapest in the end. With exact ratios AccPar's
/// assignments by the paper's formula and by equal halves are tried, too, because a half that gets more has more to
/// exchange below. Of equal ones the first.
struct Best {
  Assignment assignment;
  AssignmentCost cost;
  std::string_view found_by;  ///< "AccPar", "HyPar", "One Weird Trick", "data parallelism"
};
Expected<Best> best_of_all(const LayerGraph& graph, const Bisection& devices, const Options& options,
                           const RunContext& context = {});

}  // namespace turnpoint::accpar
