// SPDX-License-Identifier: Apache-2.0
// Shortest paths over a graph of layouts. Part of ReshardingModel; in a header because it runs under a slider and is
// inlined there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
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
    std::uint32_t partial = 0;
    for (const std::uint32_t source : sources) partial |= graph_.partial(source);
    const std::uint32_t nodes = graph_.nodes();
    keys_.resize(nodes);
    // Partial layouts that no source has are never better than anything.
    for (std::uint32_t n = 0; n < nodes; ++n) keys_[n] = (graph_.partial(n) & ~partial) != 0 ? kBarred : kInfinity;
    nodes_.resize(nodes);
    final_.assign(nodes, 0);
    wanted_.assign(nodes, 0);
    std::size_t open = 0;
    for (const std::uint32_t source : sources) {
      open += wanted_[source] ? 0 : 1;
      wanted_[source] = 1;
    }
    heap_.clear();
    keys_[target] = 0;
    nodes_[target] = {0, ReshardGraph::kNone, 0};
    free_.assign(1, target);
    while (open > 0 && (!free_.empty() || !heap_.empty())) {
      const std::uint32_t node = pop();
      if (final_[node]) continue;
      final_[node] = 1;
      if (wanted_[node]) --open;
      relax(node);
    }
  }

  double time(std::uint32_t node) const { return final_[node] ? nodes_[node].time : kInfinity; }
  std::uint32_t next(std::uint32_t node) const { return nodes_[node].next; }
  std::uint32_t price(std::uint32_t node) const { return nodes_[node].price; }

 private:
  static constexpr double kBarred = -1;
  // Key, then node. Keys are not negative, so that their bits rise with them: whole numbers are compared without a
  // branch, and a search does little else.
  __extension__ using Waiting = unsigned __int128;
  struct Node {
    double time;
    std::uint32_t next, price;
  };

  // What is reached for free from the nearest node is as near, so it never needs the heap.
  std::uint32_t pop() {
    if (!free_.empty()) {
      const std::uint32_t node = free_.back();
      free_.pop_back();
      return node;
    }
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const auto node = static_cast<std::uint32_t>(heap_.back());
    heap_.pop_back();
    return node;
  }

  // Most edges improve nothing, so what is read for every edge is kept apart: keys and prices' keys.
  void relax(std::uint32_t target) {
    const double near = keys_[target], time = nodes_[target].time;
    const double *price_keys = tables_.key.data(), *limit = keys_.data();
    for (const auto *edge = graph_.begin(target), *end = graph_.end(target); edge != end; ++edge) {
      const double key = price_keys[edge->price] + near;
      if (!(key < limit[edge->source])) continue;
      keys_[edge->source] = key;
      nodes_[edge->source] = {tables_.time[edge->price] + time, target, edge->price};
      if (edge->price == 0) {
        free_.push_back(edge->source);
      } else {
        heap_.push_back(Waiting(std::bit_cast<std::uint64_t>(key)) << 32 | edge->source);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      }
    }
  }

  const ReshardGraph& graph_;
  const ReshardTables& tables_;
  std::vector<double> keys_;
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> final_, wanted_;
  std::vector<std::uint32_t> free_;
  std::vector<Waiting> heap_;
};

}  // namespace turnpoint
