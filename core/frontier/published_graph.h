// SPDX-License-Identifier: Apache-2.0
// The graph that the published algorithms (published.h) take apart: operators and edges that stand for tables, without
// any cost. All edges run forward in one topological order of what is left.
#pragma once

#include <cstdint>
#include <vector>

#include "core/frontier/problem.h"

namespace turnpoint::frontier::detail {

struct PublishedNode {
  bool alive = true, marked = false;
  std::uint32_t table = 0;             ///< its lists, one per configuration
  std::size_t configs = 0;             ///< pairs after a branch merge
  std::vector<std::uint32_t> in, out;  ///< living edges, by rising id
};

/// Entry of configurations (a, b): from_offset[a] + to_offset[b]. So an edge that is turned round, lifted to pairs of
/// configurations or indexed by classes needs no new table.
struct PublishedEdge {
  bool alive = true;
  std::uint32_t from = 0, to = 0;
  std::uint32_t table = 0;
  std::vector<std::size_t> from_offset, to_offset;
};

class PublishedGraph {
 public:
  /// Tables are not set. Directions are kept where they form a DAG; else every edge runs from the lower to the higher
  /// index.
  explicit PublishedGraph(const Problem& problem);

  std::vector<PublishedNode> nodes;
  std::vector<PublishedEdge> edges;

  std::size_t living() const { return living_; }
  std::uint32_t first() const { return first_; }  ///< first operator in topological order, lowest index on ties
  /// Living operators, each after its producers; lowest index first.
  std::vector<std::uint32_t> topological_order() const;
  /// True if a directed path with an operator in between leads from `from` to `to`.
  bool has_detour(std::uint32_t from, std::uint32_t to) const;
  /// Marks the linear spine anew; false if an operator is left unmarked.
  bool mark_spine();

  std::uint32_t add_edge(PublishedEdge edge);
  void remove_edge(std::uint32_t edge);
  void remove_node(std::uint32_t node);  ///< with its edges
  void move_from(std::uint32_t edge, std::uint32_t from);
  void move_to(std::uint32_t edge, std::uint32_t to);

 private:
  std::size_t living_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace turnpoint::frontier::detail
