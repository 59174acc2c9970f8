// SPDX-License-Identifier: Apache-2.0
// Shortest paths over a graph of layouts. Part of ReshardingModel; in a header because it runs under a slider and is
// inlined there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/cost/reshard_graph.h"

namespace turnpoint {

struct ReshardTables {
  std::vector<double> time, key;  ///< per price of the graph; the key adds the penalty that breaks ties
};

// Shortest paths from everywhere to one layout.
class ReshardSearch {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  ReshardSearch(const ReshardGraph& graph, const ReshardTables& tables) : graph_(graph), tables_(tables) {}

  // Runs until all `sources` are final. Sources not reachable keep an infinite time.
  void run(std::uint32_t target, std::span<const std::uint32_t> sources) {
    nodes_.assign(graph_.nodes(), Node());
    std::size_t open = 0;
    std::uint32_t partial = 0;
    for (const std::uint32_t source : sources) {
      open += nodes_[source].wanted ? 0 : 1;
      nodes_[source].wanted = true;
      partial |= graph_.partial(source);
    }
    heap_.clear();
    nodes_[target].key = nodes_[target].time = 0;
    free_.assign(1, target);
    while (open > 0 && (!free_.empty() || !heap_.empty())) {
      const std::uint32_t node = pop();
      if (nodes_[node].final) continue;
      nodes_[node].final = true;
      if (nodes_[node].wanted) --open;
      relax(node, partial);
    }
  }

  double time(std::uint32_t node) const { return nodes_[node].final ? nodes_[node].time : kInfinity; }
  std::uint32_t next(std::uint32_t node) const { return nodes_[node].next; }
  std::uint32_t price(std::uint32_t node) const { return nodes_[node].price; }

 private:
  struct Node {
    double key = kInfinity, time = kInfinity;
    std::uint32_t next = ReshardGraph::kNone, price = 0;
    bool final = false, wanted = false;
  };

  // What is reached for free from the nearest node is as near, so it never needs the heap.
  std::uint32_t pop() {
    if (!free_.empty()) {
      const std::uint32_t node = free_.back();
      free_.pop_back();
      return node;
    }
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const std::uint32_t node = heap_.back().second;
    heap_.pop_back();
    return node;
  }

  void relax(std::uint32_t target, std::uint32_t partial) {
    const Node near = nodes_[target];
    for (const auto* edge = graph_.begin(target); edge != graph_.end(target); ++edge) {
      const double key = tables_.key[edge->price] + near.key;
      Node& node = nodes_[edge->source];
      if (!(key < node.key) || (graph_.partial(edge->source) & ~partial) != 0) continue;
      node.key = key;
      node.time = tables_.time[edge->price] + near.time;
      node.next = target;
      node.price = edge->price;
      if (edge->price == 0) {
        free_.push_back(edge->source);
      } else {
        heap_.emplace_back(key, edge->source);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      }
    }
  }

  const ReshardGraph& graph_;
  const ReshardTables& tables_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  std::vector<std::pair<double, std::uint32_t>> heap_;
};

}  // namespace turnpoint
