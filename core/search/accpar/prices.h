// SPDX-License-Identifier: Apache-2.0
// What one cut of a layer graph costs two halves, by types and shares (AccPar, section 4; the tables follow from the
// rule of states.h).
//
// A half pays its share of every layer's FLOP, exchanges the layer's partial sums (their number does not depend on the
// ratio: they are summed within a half first), and fetches the part of tensors that it lacks. Costs are seconds, or
// elements where FLOP are free and an element costs one. A layer together with the tensor that brings its input costs
// what the slower half needs; further tensors (shortcuts, second inputs) cost what the slower half needs for them.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/search/accpar/layer_graph.h"

namespace turnpoint::accpar {

/// What a half charges. By volume: 0 and 1.
struct Rates {
  double per_flop = 0, per_element = 1;
  friend bool operator==(const Rates&, const Rates&) = default;
};
using Halves = std::array<Rates, 2>;
using Pair = std::array<double, 2>;  ///< of the first and of the second half

/// Share of the first half in each layer under each type; 0 where the layer is not to be cut so.
using Shares = std::vector<std::array<double, kTypes>>;

/// Computing and partial sums.
Pair layer_charge(const Layer& layer, Type type, double share, const Halves& halves);
/// Fetching the tensor and its error. An end is a layer with its type and share.
struct End {
  const Layer& layer;
  Type type;
  double share;
};
Pair edge_charge(const Edge& edge, const End& from, const End& to, const Halves& halves);

struct LevelPrices {
  std::vector<std::array<double, kTypes>> layers;          ///< 0 where an edge carries the layer's charge
  std::vector<std::array<double, kTypes * kTypes>> edges;  ///< of types [from * 3 + to]
};
/// Entries of types with share 0 are meaningless.
LevelPrices level_prices(const LayerGraph& graph, const Shares& shares, const Halves& halves);

/// Sum of the prices of an assignment.
double level_cost(const LayerGraph& graph, std::span<const Type> types, std::span<const double> shares,
                  const Halves& halves);

}  // namespace turnpoint::accpar
