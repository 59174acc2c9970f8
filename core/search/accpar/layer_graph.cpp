// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/layer_graph.h"

#include <cmath>

namespace turnpoint::accpar {

namespace {

constexpr std::size_t kBatch = static_cast<std::size_t>(Type::batch), kIn = static_cast<std::size_t>(Type::reduction),
                      kOut = static_cast<std::size_t>(Type::output);

bool is_count(double value) { return std::isfinite(value) && value >= 0; }

/// A third of three units is one unit, not a little less.
double units_of(double length, double share) {
  const double part = length * share, whole = std::round(part);
  return std::abs(part - whole) <= 1e-9 * whole ? whole : part;
}

}  // namespace

std::string_view to_string(LayerKind kind) {
  switch (kind) {
    case LayerKind::fully_connected: return "fully connected";
    case LayerKind::convolution: return "convolution";
    case LayerKind::attention: return "attention";
    case LayerKind::embedding: return "embedding";
    case LayerKind::experts: return "experts";
    case LayerKind::recurrent: break;
  }
  return "recurrent";
}

double Layer::flop(Phase phase) const {
  const double result = phase == Phase::forward ? output : phase == Phase::backward ? input_error : weights;
  return std::max(0.0, 2 * products[static_cast<std::size_t>(phase)] - result);
}

double Layer::flop() const { return flop(Phase::forward) + flop(Phase::backward) + flop(Phase::gradient); }

double Layer::summed(Type type) const {
  switch (type) {
    case Type::batch: return weights;
    case Type::reduction: return output;
    case Type::output: break;
  }
  return grouped() ? 0 : input_error;
}

Layer fully_connected(std::string name, double batch, double inputs, double outputs) {
  Layer layer = convolution(std::move(name), batch, inputs, 1, 1, outputs, 1);
  layer.kind = LayerKind::fully_connected;
  return layer;
}

Layer convolution(std::string name, double batch, double inputs, double in_positions, double kernel_positions,
                  double outputs, double out_positions) {
  Layer layer;
  layer.name = std::move(name);
  layer.kind = LayerKind::convolution;
  layer.lengths = {batch, inputs, outputs};
  layer.input = layer.input_error = batch * inputs * in_positions;
  layer.output = batch * outputs * out_positions;
  layer.weights = inputs * outputs * kernel_positions;
  // The error's map is as large as the input's, as if the convolution had stride 1.
  layer.products = {layer.output * inputs * kernel_positions, layer.input_error * outputs * kernel_positions,
                    layer.weights * batch * out_positions};
  return layer;
}

Edge edge_between(const LayerGraph& graph, std::uint32_t from, std::uint32_t to) {
  const Layer& layer = graph.layers[to];
  return {from, to, Side::out, Side::in, layer.input, layer.input_error};
}

Edge shortcut_around(const LayerGraph& graph, std::uint32_t first, std::uint32_t last) {
  const Layer& layer = graph.layers[first];
  return {first, last, Side::in, Side::out, layer.input, layer.input_error};
}

LayerGraph chain(std::vector<Layer> layers) {
  LayerGraph graph;
  graph.layers = std::move(layers);
  for (std::uint32_t l = 1; l < graph.layers.size(); ++l) graph.edges.push_back(edge_between(graph, l - 1, l));
  return graph;
}

Expected<void> validate(const LayerGraph& graph) {
  if (graph.layers.empty()) return bad_input("there is no layer to partition");
  for (const Layer& layer : graph.layers) {
    bool good = is_count(layer.input) && is_count(layer.input_error) && is_count(layer.output) &&
                is_count(layer.weights) && std::isfinite(layer.groups) && layer.groups > 0;
    for (const double length : layer.lengths) good = good && std::isfinite(length) && length > 0;
    for (const double products : layer.products) good = good && is_count(products);
    if (!good) return bad_input("layer '" + layer.name + "' has a length or a size that is no number of elements");
  }
  for (const Edge& edge : graph.edges) {
    const std::size_t n = graph.layers.size();
    if (edge.from >= n || edge.to >= n) return bad_input("an edge leads to a layer that does not exist");
    if (edge.is_input() && edge.from >= edge.to)
      return bad_input("layer '" + graph.layers[edge.to].name + "' comes before '" + graph.layers[edge.from].name +
                       "', whose output it reads");
    if (!is_count(edge.forward) || !is_count(edge.backward))
      return bad_input("the tensor from '" + graph.layers[edge.from].name + "' to '" + graph.layers[edge.to].name +
                       "' has a size that is no number of elements");
  }
  return {};
}

void cut(Layer& layer, Type type, double share) {
  for (double& products : layer.products) products *= share;
  switch (type) {
    case Type::batch:
      layer.lengths[kBatch] = units_of(layer.lengths[kBatch], share);
      layer.input *= share, layer.input_error *= share, layer.output *= share;
      return;
    case Type::reduction:
      layer.lengths[kIn] = units_of(layer.lengths[kIn], share);
      layer.input *= share, layer.input_error *= share, layer.weights *= share;
      return;
    case Type::output: break;
  }
  if (layer.grouped()) {
    layer.groups = units_of(layer.groups, share);
    layer.input *= share, layer.input_error *= share;
  } else {
    layer.lengths[kOut] = units_of(layer.lengths[kOut], share);
  }
  layer.weights *= share, layer.output *= share;
}

double remaining(const Layer& uncut, Side side, Type type, double share) {
  const State state = side == Side::in ? in_state(type, uncut.grouped()) : out_state(type);
  return state == State::whole ? 1 : share;
}

LayerGraph cut(const LayerGraph& graph, const std::vector<Type>& types, const std::vector<double>& shares) {
  LayerGraph part = graph;
  for (Edge& edge : part.edges) {
    const double factor = remaining(graph.layers[edge.to], edge.to_side, types[edge.to], shares[edge.to]);
    edge.forward *= factor, edge.backward *= factor;
  }
  for (std::size_t l = 0; l < part.layers.size(); ++l) cut(part.layers[l], types[l], shares[l]);
  return part;
}

std::vector<std::uint32_t> main_inputs(const LayerGraph& graph) {
  std::vector<std::uint32_t> main(graph.layers.size(), kNoEdge);
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const Edge& edge = graph.edges[e];
    if (!edge.is_input()) continue;
    std::uint32_t& best = main[edge.to];
    if (best == kNoEdge || graph.edges[best].from < edge.from) best = e;
  }
  return main;
}

LayerGraph spine(const LayerGraph& graph) {
  LayerGraph result;
  result.layers = graph.layers;
  for (const std::uint32_t e : main_inputs(graph))
    if (e != kNoEdge) result.edges.push_back(graph.edges[e]);
  return result;
}

}  // namespace turnpoint::accpar
