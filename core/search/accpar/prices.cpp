// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/prices.h"

namespace turnpoint::accpar {

namespace {

double slower(const Pair& pair) { return std::max(pair[0], pair[1]); }
Pair sum_of(const Pair& a, const Pair& b) { return {a[0] + b[0], a[1] + b[1]}; }

State state_at(Side side, const End& end) {
  return side == Side::in ? in_state(end.type, end.layer.grouped()) : out_state(end.type);
}

}  // namespace

Pair layer_charge(const Layer& layer, Type type, double share, const Halves& halves) {
  const double flop = layer.flop(), summed = layer.summed(type);
  return {share * flop * halves[0].per_flop + summed * halves[0].per_element,
          (1 - share) * flop * halves[1].per_flop + summed * halves[1].per_element};
}

Pair edge_charge(const Edge& edge, const End& from, const End& to, const Halves& halves) {
  const State at_from = state_at(edge.from_side, from), at_to = state_at(edge.to_side, to);
  const auto elements = [&](double share_from, double share_to) {
    return edge.forward * fetched(at_from, share_from, at_to, share_to) +
           edge.backward * fetched(at_to, share_to, at_from, share_from);
  };
  return {elements(from.share, to.share) * halves[0].per_element,
          elements(1 - from.share, 1 - to.share) * halves[1].per_element};
}

LevelPrices level_prices(const LayerGraph& graph, const Shares& shares, const Halves& halves) {
  const auto main = main_inputs(graph);
  std::vector<std::array<Pair, kTypes>> own(graph.layers.size());
  LevelPrices prices;
  prices.layers.resize(graph.layers.size());
  for (std::size_t l = 0; l < own.size(); ++l)
    for (std::size_t t = 0; t < kTypes; ++t) {
      if (shares[l][t] <= 0) continue;
      own[l][t] = layer_charge(graph.layers[l], kAllTypes[t], shares[l][t], halves);
      prices.layers[l][t] = main[l] == kNoEdge ? slower(own[l][t]) : 0;
    }
  prices.edges.resize(graph.edges.size());
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const Edge& edge = graph.edges[e];
    for (std::size_t a = 0; a < kTypes; ++a)
      for (std::size_t b = 0; b < kTypes; ++b) {
        if (shares[edge.from][a] <= 0 || shares[edge.to][b] <= 0 || (edge.from == edge.to && a != b)) continue;
        Pair pair = edge_charge(edge, {graph.layers[edge.from], kAllTypes[a], shares[edge.from][a]},
                                {graph.layers[edge.to], kAllTypes[b], shares[edge.to][b]}, halves);
        if (main[edge.to] == e) pair = sum_of(pair, own[edge.to][b]);
        prices.edges[e][a * kTypes + b] = slower(pair);
      }
  }
  return prices;
}

double level_cost(const LayerGraph& graph, std::span<const Type> types, std::span<const double> shares,
                  const Halves& halves) {
  const auto main = main_inputs(graph);
  const auto own = [&](std::size_t l) { return layer_charge(graph.layers[l], types[l], shares[l], halves); };
  double cost = 0;
  for (std::size_t l = 0; l < graph.layers.size(); ++l)
    if (main[l] == kNoEdge) cost += slower(own(l));
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const Edge& edge = graph.edges[e];
    Pair pair = edge_charge(edge, {graph.layers[edge.from], types[edge.from], shares[edge.from]},
                            {graph.layers[edge.to], types[edge.to], shares[edge.to]}, halves);
    if (main[edge.to] == e) pair = sum_of(pair, own(edge.to));
    cost += slower(pair);
  }
  return cost;
}

}  // namespace turnpoint::accpar
