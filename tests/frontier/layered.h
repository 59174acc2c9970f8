// SPDX-License-Identifier: Apache-2.0
// Seeded problems in the shape of parallelisation searches, for benchmarks and for tests of speed and cancelling.
#pragma once

#include <cmath>

#include "frontier/problems.h"

namespace turnpoint::frontier::test {

/// Table of one resharding: nothing between equal layouts, else two choices (keep one copy, or keep both: more memory,
/// 0.55 of the time).
inline CostTable resharding_table(Generator& g, std::uint32_t rows, std::uint32_t columns) {
  CostTable table;
  const std::int64_t tensor = g.number(1u << 18, 1u << 24);
  for (std::uint32_t x = 0; x < rows; ++x)
    for (std::uint32_t y = 0; y < columns; ++y) {
      const double factors[] = {1, 1, 2, 3};
      const double t = static_cast<double>(tensor) * factors[g.number(0, 3)] * 1e-10 + 1e-5;
      const CostPoint both[] = {{0, t}, {tensor / 4, 0.55 * t}};
      if (x == y)
        table.add(CostPoint{0, 0.0});
      else
        table.add(both);
    }
  return table;
}

/// Operator: parameters / 2^a + activations / 2^b bytes, FLOP time / 2^(a+b) + synchronisation.
inline Node layered_node(Generator& g, std::uint32_t configs) {
  Node node;
  const std::int64_t parameters = g.number(1u << 20, 1u << 28), activations = g.number(1u << 20, 1u << 27);
  const double flops = g.real(1e-3, 2e-2);
  for (std::uint32_t k = 0; k < configs; ++k) {
    const std::uint32_t a = g.number(0, 4), b = g.number(0, 4);
    node.costs.add(CostPoint{(parameters >> a) + (activations >> b),
                             std::ldexp(flops, -static_cast<int>(std::min(4u, a + b))) +
                                 (4 - a) * static_cast<double>(parameters) * 1e-12 * g.real(1, 2)});
  }
  return node;
}

inline std::vector<std::uint32_t> random_classes(Generator& g, std::uint32_t configs, std::uint32_t layouts) {
  std::vector<std::uint32_t> classes;
  for (std::uint32_t k = 0; k < configs; ++k) classes.push_back(g.number(0, layouts - 1));
  return classes;
}

/// Chain of n operators with K configurations and S layouts.
inline Problem layered_chain(std::uint64_t seed, std::uint32_t n, std::uint32_t configs, std::uint32_t layouts) {
  Generator g(seed);
  Problem problem;
  std::vector<std::vector<std::uint32_t>> out, in;
  for (std::uint32_t i = 0; i < n; ++i) {
    problem.nodes.push_back(layered_node(g, configs));
    out.push_back(random_classes(g, configs, layouts));
    in.push_back(random_classes(g, configs, layouts));
  }
  for (std::uint32_t i = 0; i + 1 < n; ++i)
    problem.edges.push_back({i, i + 1, out[i], in[i + 1], layouts, layouts, resharding_table(g, layouts, layouts)});
  return problem;
}

/// Every configuration of every node gets up to `count` alternatives, each slower and smaller than the one before: as
/// recomputation, sharded updates and offload do it.
inline Problem with_alternatives(Problem problem, std::uint64_t seed, std::uint32_t count) {
  Generator g(seed ^ 0xa17e);
  for (Node& node : problem.nodes) {
    CostTable costs;
    for (std::size_t k = 0; k < node.costs.size(); ++k) {
      CostPoint p = node.costs[k][0];
      std::vector<CostPoint> list{p};
      for (std::uint32_t a = 1; a < count; ++a) {
        p.memory -= static_cast<std::int64_t>(static_cast<double>(p.memory) * g.real(0.05, 0.3));
        p.time *= g.real(1.02, 1.3);
        list.insert(list.begin(), p);
      }
      costs.add(list);
    }
    node.costs = std::move(costs);
  }
  return problem;
}

/// Residual network: hub -> operators -> next hub, and a skip from hub to hub. `kinds` different blocks, repeated in
/// turn. `tied`: an edge from the first to the last node, as tied embeddings make it.
inline Problem residual_blocks(std::uint64_t seed, std::uint32_t blocks, std::uint32_t operators, std::uint32_t configs,
                               std::uint32_t producer_layouts, std::uint32_t consumer_layouts, std::uint32_t kinds,
                               bool tied) {
  Generator g(seed);
  struct Block {
    std::vector<Node> nodes;
    std::vector<std::vector<std::uint32_t>> out, in;
    std::vector<CostTable> tables;
    CostTable skip;
    std::vector<std::uint32_t> hub_skip;
  };
  const std::uint32_t hub_configs = std::max(2u, consumer_layouts);
  const Node hub_node = layered_node(g, hub_configs);
  std::vector<std::uint32_t> hub_in, hub_out;
  for (std::uint32_t k = 0; k < hub_configs; ++k) {
    hub_in.push_back(k % consumer_layouts);
    hub_out.push_back(k % producer_layouts);
  }
  std::vector<Block> pattern(kinds);
  for (Block& b : pattern) {
    for (std::uint32_t o = 0; o < operators; ++o) {
      b.nodes.push_back(layered_node(g, configs));
      b.in.push_back(random_classes(g, configs, consumer_layouts));
      b.out.push_back(random_classes(g, configs, producer_layouts));
    }
    for (std::uint32_t o = 0; o <= operators; ++o)
      b.tables.push_back(resharding_table(g, producer_layouts, consumer_layouts));
    b.skip = resharding_table(g, producer_layouts, consumer_layouts);
  }
  Problem problem;
  problem.nodes.push_back(hub_node);
  for (std::uint32_t i = 0; i < blocks; ++i) {
    const Block& b = pattern[i % kinds];
    const auto hub = static_cast<std::uint32_t>(problem.nodes.size() - 1);
    for (std::uint32_t o = 0; o < operators; ++o) {
      const std::uint32_t previous = o == 0 ? hub : static_cast<std::uint32_t>(problem.nodes.size() - 1);
      problem.edges.push_back({previous, static_cast<std::uint32_t>(problem.nodes.size()),
                               o == 0 ? hub_out : b.out[o - 1], b.in[o], producer_layouts, consumer_layouts,
                               b.tables[o]});
      problem.nodes.push_back(b.nodes[o]);
    }
    const auto next = static_cast<std::uint32_t>(problem.nodes.size());
    problem.edges.push_back(
        {next - 1, next, b.out[operators - 1], hub_in, producer_layouts, consumer_layouts, b.tables[operators]});
    problem.edges.push_back({hub, next, hub_out, hub_in, producer_layouts, consumer_layouts, b.skip});
    problem.nodes.push_back(hub_node);
  }
  if (tied)
    problem.edges.push_back({0, static_cast<std::uint32_t>(problem.nodes.size() - 1), hub_out, hub_in, producer_layouts,
                             consumer_layouts, resharding_table(g, producer_layouts, consumer_layouts)});
  return problem;
}

}  // namespace turnpoint::frontier::test
