// SPDX-License-Identifier: Apache-2.0
// A task graph as the networks see it: units that move as one, with features; groups of units, with features.
//
// Units are co-location groups and tasks (core/search/placement/units.h). Above the limit they are joined: chains
// first, then pairs that exchange most, so that drawing a group per unit stays a sensible number of decisions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/search/placement/placement_method.h"
#include "core/search/trinity/partition_network.h"

namespace turnpoint::trinity {

struct UnitEdge {
  std::uint32_t from = 0, to = 0;
  double bytes = 0;
  double seconds = 0;  ///< of all its transfers, one after the other
};

/// The graph between units; edges sorted by (from, to), each pair once, none within a unit.
struct UnitGraph {
  std::vector<std::uint32_t> of_task;
  std::vector<double> time_s, output_bytes, persistent_bytes;  ///< sums over the unit's tasks
  std::vector<double> place;  ///< mean place of its tasks among the layers, 0 to 1 (placement::line_up)
  std::vector<UnitEdge> edges;
  std::size_t count() const { return time_s.size(); }
};

/// Which pairs of units are joined first.
enum class Joining : std::uint8_t {
  by_exchange,  ///< those that exchange most: a layer with its weights
  by_rating,    ///< those that exchange most for what they compute: what belongs together and is short
};

/// At most `most` units, or as few as there are co-location groups and tasks.
UnitGraph make_unit_graph(const TaskGraph& graph, std::size_t most, Joining joining = Joining::by_exchange);

/// Units joined further, to at most `most` pieces that exchange little with one another: of each unit its piece, by
/// rising mean place.
std::vector<std::uint32_t> joined_pieces(const TaskGraph& graph, const UnitGraph& units, std::size_t most);

/// Numbers without unit of a feature: mean 0, standard deviation 1 (of the population); all 0 where nothing differs.
std::vector<double> z_scores(std::vector<double> values);

/// 32 numbers per unit by which near units are alike: sparse random directions, carried one to four steps along the
/// edges and added up (FastRP, Chen et al., arXiv 1908.11512). The paper has node2vec here, whose walks see the same
/// neighbourhoods at a hundred times the work.
inline constexpr std::size_t kEmbedding = 32;
std::vector<float> structural_embedding(const UnitGraph& units, std::uint64_t seed);

/// Words of the tasks' names without numbers, the commonest 199; 0 for any other. By unit, of its longest task.
struct TypeWords {
  std::vector<std::uint32_t> of_unit;
  std::size_t count = 1;
};
inline constexpr std::size_t kVocabulary = 200;
TypeWords type_words(const TaskGraph& graph, const UnitGraph& units);

/// What the networks work on. Kept by reference: the graph outlives it.
struct Problem {
  const TaskGraph& graph;
  UnitGraph units = {};
  UnitFeatures features = {};
  Joining joining = Joining::by_exchange;
  std::size_t groups = 1;
  std::vector<double> log_output = {};      ///< by unit, z-score of log(1 + bytes)
  std::vector<float> device_features = {};  ///< devices x kDeviceFeatures
  static constexpr std::size_t kDeviceFeatures = 2;

  /// Mean type vector; means of output size and place; shares of units, time and parameters; to and from which groups.
  std::size_t group_width() const { return features.types + 5 + 2 * groups; }
  std::vector<float> group_features(const std::vector<std::uint32_t>& group_of) const;
  /// Device per task.
  std::vector<std::uint32_t> devices_of(const std::vector<std::uint32_t>& group_of,
                                        const std::vector<std::uint32_t>& device_of_group) const;
};

Problem make_problem(const TaskGraph& graph, const placement::PlacementRequest& request, std::size_t most_units,
                     std::size_t groups, Joining joining = Joining::by_exchange);

/// A partition that a placement can be said in: of each device the units along the layers, cut into as many groups as
/// the device has units in proportion. Where a joined unit is on several devices it goes where most of its time is.
struct Decided {
  std::vector<std::uint32_t> group_of, device_of_group;
};
Decided decisions_of(const Problem& problem, std::uint32_t devices, const std::vector<std::uint32_t>& device_of_task);

}  // namespace turnpoint::trinity
