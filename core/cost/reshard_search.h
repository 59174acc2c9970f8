// SPDX-License-Identifier: Apache-2.0
// Shortest paths over a graph of layouts. Part of ReshardingModel; in a header because it runs under a slider and is
// inlined there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/cost/reshard_graph.h"

namespace turnpoint {

struct ReshardTables {
  std::vector<double> time, key;  ///< per price of the graph; the key adds the penalty that breaks ties
};

/// Nodes that wait with a key each. A node waits once, with its least key; many are put and few taken, so that putting
/// one is a comparison, and taking one looks through blocks of about the root of their number. A search takes four
/// fifths of its time with a heap.
class WaitingNodes {
 public:
  void clear(std::uint32_t nodes) {
    shift_ = std::max(3, (static_cast<int>(std::bit_width(nodes)) + 1) / 2);
    const std::size_t blocks = (nodes >> shift_) + 1;
    keys_.assign(blocks << shift_, kNever);
    least_.assign((blocks + 7) / 8 * 8, kNever);
  }

  void put(std::uint32_t node, double key) {
    const auto bits = std::bit_cast<std::uint64_t>(key);  // rise with the key, which is not negative
    keys_[node] = bits;
    std::uint64_t& least = least_[node >> shift_];
    least = std::min(least, bits);
  }

  /// Takes out the node of the least key, of equal ones the first; ReshardGraph::kNone if none waits.
  std::uint32_t take_nearest() {
    const std::uint64_t nearest = least_of(least_.data(), least_.size());
    if (nearest == kNever) return ReshardGraph::kNone;
    const std::size_t block = find(least_.data(), nearest);
    std::uint64_t* keys = keys_.data() + (block << shift_);
    const std::size_t at = find(keys, nearest);
    keys[at] = kNever;
    least_[block] = least_of(keys, std::size_t(1) << shift_);
    return static_cast<std::uint32_t>((block << shift_) + at);
  }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t(0);

  // Several at a time, since each comparison waits for the one before.
  static std::uint64_t least_of(const std::uint64_t* values, std::size_t count) {
    constexpr std::size_t kTogether = 8;
    std::uint64_t least[kTogether];
    std::fill(least, least + kTogether, kNever);
    for (std::size_t i = 0; i < count; i += kTogether)
      for (std::size_t k = 0; k < kTogether; ++k) least[k] = std::min(least[k], values[i + k]);
    return *std::min_element(least, least + kTogether);
  }
  static std::size_t find(const std::uint64_t* values, std::uint64_t value) {
    std::size_t i = 0;
    while (values[i] != value) ++i;
    return i;
  }

  int shift_ = 0;
  std::vector<std::uint64_t> keys_, least_;  // of nodes; of blocks of 2^shift_ of them
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
    waiting_.clear(nodes);
    keys_[target] = 0;
    nodes_[target] = {0, ReshardGraph::kNone, 0};
    free_.assign(1, target);
    while (open > 0) {
      const std::uint32_t node = pop();
      if (node == ReshardGraph::kNone) break;
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
  struct Node {
    double time;
    std::uint32_t next, price;
  };

  // What is reached for free from the nearest node is as near, so it never needs to wait.
  std::uint32_t pop() {
    if (free_.empty()) return waiting_.take_nearest();
    const std::uint32_t node = free_.back();
    free_.pop_back();
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
        waiting_.put(edge->source, key);
      }
    }
  }

  const ReshardGraph& graph_;
  const ReshardTables& tables_;
  std::vector<double> keys_;
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> final_, wanted_;
  std::vector<std::uint32_t> free_;
  WaitingNodes waiting_;
};

}  // namespace turnpoint
