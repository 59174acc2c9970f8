// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/ratio.h"

#include <cmath>
#include <map>
#include <tuple>

namespace turnpoint::accpar {

namespace {

std::array<ShareTime, 2> of_layer(const Layer& layer, Type type, const Halves& halves) {
  std::array<ShareTime, 2> times;
  for (std::size_t h = 0; h < 2; ++h)
    times[h] = {layer.flop() * halves[h].per_flop, layer.summed(type) * halves[h].per_element, 0, 0};
  return times;
}

std::array<ShareTime, 2> of_edge(const Edge& edge, State from, State to, const Halves& halves) {
  double fetch = 0, exchange = 0;
  const auto add = [&](State had, State wanted, double elements) {
    if (had == wanted || had == State::whole) return;
    (wanted == State::whole ? fetch : exchange) += elements;
  };
  add(from, to, edge.forward), add(to, from, edge.backward);
  std::array<ShareTime, 2> times;
  for (std::size_t h = 0; h < 2; ++h)
    times[h] = {0, 0, fetch * halves[h].per_element, exchange * halves[h].per_element};
  return times;
}

std::array<ShareTime, 2> totals(std::span<const RatioTerm> terms) {
  std::array<ShareTime, 2> sums;
  for (const RatioTerm& term : terms)
    for (std::size_t h = 0; h < 2; ++h) sums[h] += term.halves[h];
  return sums;
}

/// Ratios strictly between the ends at which both halves of the term need the same time.
void add_crossings(const RatioTerm& term, std::vector<double>& ratios) {
  const ShareTime &i = term.halves[0], &j = term.halves[1];
  // T_i(a) - T_j(1 - a) = p a^2 + q a + r
  const double p = j.exchange - i.exchange, q = i.compute - i.fetch + i.exchange + j.compute - j.fetch - j.exchange,
               r = i.fixed + i.fetch - j.compute - j.fixed;
  const auto add = [&](double ratio) {
    if (ratio > kLeastRatio && ratio < 1 - kLeastRatio) ratios.push_back(ratio);
  };
  if (p == 0) {
    if (q != 0) add(-r / q);
    return;
  }
  const double inside = q * q - 4 * p * r;
  if (inside < 0) return;
  const double half = -0.5 * (q + std::copysign(std::sqrt(inside), q));
  add(half / p);
  if (half != 0) add(r / half);
}

}  // namespace

ShareTime& ShareTime::operator+=(const ShareTime& other) {
  compute += other.compute, fixed += other.fixed, fetch += other.fetch, exchange += other.exchange;
  return *this;
}

std::vector<RatioTerm> ratio_terms(const LayerGraph& graph, std::span<const Type> types, const Halves& halves) {
  const auto main = main_inputs(graph);
  std::vector<RatioTerm> terms;
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    if (main[l] == kNoEdge) terms.push_back({of_layer(graph.layers[l], types[l], halves)});
  }
  const auto state = [&](std::uint32_t l, Side side) {
    return side == Side::in ? in_state(types[l], graph.layers[l].grouped()) : out_state(types[l]);
  };
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const Edge& edge = graph.edges[e];
    RatioTerm term{of_edge(edge, state(edge.from, edge.from_side), state(edge.to, edge.to_side), halves)};
    if (main[edge.to] == e) {
      const auto own = of_layer(graph.layers[edge.to], types[edge.to], halves);
      for (std::size_t h = 0; h < 2; ++h) term.halves[h] += own[h];
    }
    terms.push_back(term);
  }
  return terms;
}

double paper_ratio(std::span<const RatioTerm> terms) {
  const auto sums = totals(terms);
  const double i = sums[0].at(1), j = sums[1].at(1);
  return i + j > 0 ? std::clamp(j / (i + j), kLeastRatio, 1 - kLeastRatio) : 0.5;
}

double balanced_ratio(std::span<const RatioTerm> terms) {
  const auto sums = totals(terms);
  const auto late = [&](double ratio) { return sums[0].at(ratio) - sums[1].at(1 - ratio); };
  double low = kLeastRatio, high = 1 - kLeastRatio;
  // Communication may keep one half behind at every ratio.
  if (late(low) >= 0 && late(high) >= 0) return late(low) < late(high) ? low : high;
  if (late(low) <= 0 && late(high) <= 0) return late(low) > late(high) ? low : high;
  const bool rising = late(low) < 0;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    ((late(middle) < 0) == rising ? low : high) = middle;
  }
  return (low + high) / 2;
}

double least_ratio(std::span<const RatioTerm> terms) {
  // Repeated layers are one term with a weight.
  std::map<std::array<double, 8>, double> weights;
  for (const RatioTerm& term : terms) {
    const auto& [i, j] = term.halves;
    ++weights[{i.compute, i.fixed, i.fetch, i.exchange, j.compute, j.fixed, j.fetch, j.exchange}];
  }
  std::vector<std::pair<RatioTerm, double>> unlike;
  std::vector<double> ratios{kLeastRatio, 1 - kLeastRatio};
  for (const auto& [v, weight] : weights) {
    unlike.push_back({RatioTerm{{ShareTime{v[0], v[1], v[2], v[3]}, ShareTime{v[4], v[5], v[6], v[7]}}}, weight});
    add_crossings(unlike.back().first, ratios);
  }
  std::sort(ratios.begin(), ratios.end());
  double best = 0.5, least = -1;
  for (const double ratio : ratios) {
    double sum = 0;
    for (const auto& [term, weight] : unlike) sum += weight * term.at(ratio);
    if (least < 0 || sum < least) least = sum, best = ratio;
  }
  return best;
}

}  // namespace turnpoint::accpar
