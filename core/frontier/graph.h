// SPDX-License-Identifier: Apache-2.0
// The factor graph the engine works on, made from a Problem by an exact presolve: equal rows and columns of an edge
// become one class; the configurations of a node become *states*, one per distinct tuple of classes on its edges, each
// with the reduced list of what its configurations cost. Equal tables (repeated layers) are stored once.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "core/base/parallel.h"
#include "core/frontier/problem.h"

namespace turnpoint::frontier::detail {

/// A table of short frontier lists, one per entry, in structure-of-arrays form.
struct Leaf {
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::int64_t> memory;
  std::vector<double> time;
  std::vector<std::uint16_t> alternative;  ///< edges: which alternative of the entry; empty for nodes

  std::size_t entries() const { return offsets.size() - 1; }
  friend bool operator==(const Leaf&, const Leaf&) = default;
};

/// Where a point of a node's leaf comes from.
struct Origin {
  std::vector<std::uint32_t> config;
  std::vector<std::uint16_t> alternative;
};

struct Variable {
  std::uint32_t states = 0;
  std::uint32_t leaf = 0;    ///< index into Graph::leaves
  std::uint32_t origin = 0;  ///< node of the problem whose origins apply; kNoOrigin for a copy without cost
};
inline constexpr std::uint32_t kNoOrigin = ~std::uint32_t(0);

/// An edge: a table over the classes of its two ends. Entry of (x, y) is at x * columns + y.
struct Factor {
  std::uint32_t a = 0, b = 0;                    ///< variables
  std::vector<std::uint32_t> row_of, column_of;  ///< state of a -> row, state of b -> column
  std::uint32_t rows = 0, columns = 0;
  std::uint32_t leaf = 0;
};

struct Graph {
  std::vector<Variable> variables;
  std::vector<Factor> factors;
  std::vector<std::shared_ptr<const Leaf>> leaves;   ///< pairwise different in content
  std::vector<Origin> origins;                       ///< per node of the problem
  std::vector<std::vector<std::uint32_t>> state_of;  ///< per node: configuration -> state

  /// True if both have the same variables, states, factors and classes; costs may differ.
  bool same_structure(const Graph& other) const;
};

/// The presolve. Time O(size of the tables). After a stop request the result is incomplete and must not be used.
Graph build_graph(const Problem& problem, ThreadPool& pool, std::stop_token stop = {});

/// The same graph with the states of some variables restricted to the given (sorted, non-empty) sets.
/// allowed[v] empty = all states.
Graph restrict_states(const Graph& graph, const std::vector<std::vector<std::uint32_t>>& allowed);

}  // namespace turnpoint::frontier::detail
