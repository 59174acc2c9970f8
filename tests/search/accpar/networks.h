// SPDX-License-Identifier: Apache-2.0
// Layer tables of the golden run, random networks, and the paper's cost tables written out, as the oracle of the rule.
#pragma once

#include <functional>
#include <random>

#include "core/search/accpar/hierarchy.h"

namespace turnpoint::test {

/// Five convolutions and three fully connected layers at batch 512, with the maps that the authors' program has: the
/// output's map is counted after its pooling.
inline accpar::LayerGraph golden_alexnet(double batch = 512) {
  using accpar::convolution, accpar::fully_connected;
  return accpar::chain({convolution("conv1", batch, 3, 224 * 224, 121, 96, 55 * 55),
                        convolution("conv2", batch, 96, 55 * 55, 25, 256, 27 * 27),
                        convolution("conv3", batch, 256, 27 * 27, 9, 384, 13 * 13),
                        convolution("conv4", batch, 384, 13 * 13, 9, 384, 13 * 13),
                        convolution("conv5", batch, 384, 13 * 13, 9, 256, 6 * 6),
                        fully_connected("fc1", batch, 9216, 4096), fully_connected("fc2", batch, 4096, 4096),
                        fully_connected("fc3", batch, 4096, 1000)});
}

/// Convolutions of kernel 3 from map to map, then three fully connected layers.
inline accpar::LayerGraph golden_vgg(const std::vector<double>& maps, const std::vector<double>& channels,
                                     double batch = 512) {
  std::vector<accpar::Layer> layers;
  for (std::size_t i = 0; i + 1 < maps.size(); ++i)
    layers.push_back(accpar::convolution("conv" + std::to_string(i + 1), batch, channels[i], maps[i] * maps[i], 9,
                                         channels[i + 1], maps[i + 1] * maps[i + 1]));
  layers.push_back(accpar::fully_connected("fc1", batch, 25088, 4096));
  layers.push_back(accpar::fully_connected("fc2", batch, 4096, 4096));
  layers.push_back(accpar::fully_connected("fc3", batch, 4096, 1000));
  return accpar::chain(std::move(layers));
}
inline accpar::LayerGraph golden_vgg11() {
  return golden_vgg({224, 112, 56, 56, 28, 28, 14, 14, 7}, {3, 64, 128, 256, 256, 512, 512, 512, 512});
}
inline accpar::LayerGraph golden_vgg19() {
  return golden_vgg({224, 224, 112, 112, 56, 56, 56, 56, 28, 28, 28, 28, 14, 14, 14, 14, 7},
                    {3, 64, 64, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512, 512, 512, 512, 512});
}

/// Fully connected layers, one after the other.
inline accpar::LayerGraph connected_chain(double batch, const std::vector<double>& widths) {
  std::vector<accpar::Layer> layers;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    layers.push_back(accpar::fully_connected("fc" + std::to_string(i), batch, widths[i], widths[i + 1]));
  return accpar::chain(std::move(layers));
}

inline accpar::LayerGraph random_chain(std::mt19937_64& random, int layers) {
  const auto width = [&] {
    return static_cast<double>(std::uint64_t{1} << (2 + random() % 9)) * double(1 + random() % 3);
  };
  std::vector<double> widths;
  for (int i = 0; i <= layers; ++i) widths.push_back(width());
  return connected_chain(width(), widths);
}

/// Blocks of one to four layers with an identity around them or a layer as the shortcut, between single layers.
inline accpar::LayerGraph random_residual(std::mt19937_64& random, int most_layers) {
  using namespace accpar;
  const double batch = double(4 << (random() % 6));
  const auto width = [&] { return double(4 << (random() % 5)); };
  LayerGraph graph;
  double at = width();
  const auto add = [&](double to) {
    graph.layers.push_back(fully_connected("fc" + std::to_string(graph.layers.size()), batch, at, to));
    at = to;
    return static_cast<std::uint32_t>(graph.layers.size() - 1);
  };
  std::uint32_t last = add(width());
  while (int(graph.layers.size()) + 6 <= most_layers) {
    const double outside = at;
    const int inner = 1 + int(random() % 4);
    const std::uint32_t fork = last;
    std::uint32_t branch = kNoEdge;
    if (random() % 3 == 0) {
      branch = add(outside);
      graph.edges.push_back(edge_between(graph, fork, branch));
      at = outside;
    }
    std::uint32_t first = kNoEdge;
    for (int i = 0; i < inner; ++i) {
      const std::uint32_t next = add(i + 1 == inner ? outside : width());
      graph.edges.push_back(edge_between(graph, i == 0 ? fork : last, next));
      if (i == 0) first = next;
      last = next;
    }
    if (branch == kNoEdge) {
      graph.edges.push_back(shortcut_around(graph, first, last));
    } else {
      graph.edges.push_back({branch, last, Side::out, Side::out, graph.layers[last].output, graph.layers[last].output});
    }
    const std::uint32_t joined = add(width());
    graph.edges.push_back(edge_between(graph, last, joined));
    last = joined;
  }
  return graph;
}

/// A cut between 2^levels equal devices.
inline accpar::Bisection equal_devices(int levels, double flops = 1, double link = 1) {
  accpar::DeviceTree tree = accpar::device("d", flops, 1);
  for (int i = 0; i < levels; ++i) tree = accpar::group_of("g", link, tree, 2);
  auto result = accpar::bisect(tree);
  return result ? std::move(*result) : accpar::Bisection{};
}

/// By volume, lengths cut as real numbers, equal halves: what the authors' program computes.
inline accpar::Options by_volume(accpar::Space space, accpar::Programme programme = accpar::Programme::published) {
  accpar::Options options;
  options.space = space;
  options.objective = accpar::Objective::volume;
  options.programme = programme;
  options.ratio = accpar::Ratio::equal;
  options.whole_units = false;
  return options;
}

/// Every assignment of three types to layers, by number of the type.
inline void each_assignment(std::size_t layers, const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> types(layers, 0);
  for (;;) {
    visit(types);
    std::size_t l = 0;
    while (l < layers && ++types[l] == 3) types[l++] = 0;
    if (l == layers) return;
  }
}

/// The paper's table of the volume between layers (its section 4.2), fetched by the half with share alpha: rows are
/// types of the producer, columns of the consumer. `forward` and `error` are the elements of the two tensors.
inline double table_volume(int producer, int consumer, double forward, double error, double alpha) {
  const double beta = 1 - alpha, both = alpha * beta * (forward + error);
  const double table[3][3] = {{0, both, beta * forward}, {beta * error, beta * error, 0}, {both, 0, beta * forward}};
  return table[producer][consumer];
}
/// The same for an identity from the input of the first layer of a block to the output of its last one.
inline double shortcut_volume(int first, int last, double forward, double error, double alpha) {
  const double beta = 1 - alpha, both = alpha * beta * (forward + error);
  // From rows, columns, whole to rows, whole, columns.
  const double table[3][3] = {{0, beta * forward, both}, {both, beta * forward, 0}, {beta * error, 0, beta * error}};
  return table[first][last];
}

/// Volume of a level at ratio one half, from these tables and the sizes of the layers.
inline double volume_by_tables(const accpar::LayerGraph& graph, const std::vector<int>& types) {
  using accpar::Side;
  double volume = 0;
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const accpar::Layer& layer = graph.layers[l];
    volume += types[l] == 0 ? layer.weights : types[l] == 1 ? layer.output : layer.input;
  }
  for (const accpar::Edge& edge : graph.edges) {
    const int from = types[edge.from], to = types[edge.to];
    if (edge.is_input())
      volume += table_volume(from, to, edge.forward, edge.backward, 0.5);
    else if (edge.from_side == Side::in)
      volume += shortcut_volume(from, to, edge.forward, edge.backward, 0.5);
    else {
      // A branch that is added: rows, whole, columns to rows, whole, columns.
      const double half = 0.25 * (edge.forward + edge.backward);
      const double table[3][3] = {
          {0, edge.forward / 2, half}, {edge.backward / 2, 0, edge.backward / 2}, {half, edge.forward / 2, 0}};
      volume += table[from][to];
    }
  }
  return volume;
}

}  // namespace turnpoint::test
