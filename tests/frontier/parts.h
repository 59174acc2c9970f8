// SPDX-License-Identifier: Apache-2.0
// What the engine is made of, for tests of its parts.
#pragma once

#include "core/frontier/lists.h"

namespace turnpoint::frontier::test {

/// A graph with its elimination and tables.
struct Parts {
  explicit Parts(const Problem& problem, std::size_t max_table = 1u << 24)
      : pool(2),
        graph(frontier::detail::build_graph(problem, pool)),
        plan(frontier::detail::eliminate(graph, max_table)) {
    frontier::detail::build_dag(graph, plan, dag);
  }
  RunContext context;
  frontier::detail::Control control{context, 0};
  ThreadPool pool;
  frontier::detail::Graph graph;
  frontier::detail::Elimination plan;
  frontier::detail::Dag dag;
};

}  // namespace turnpoint::frontier::test
