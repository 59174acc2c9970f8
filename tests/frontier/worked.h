// SPDX-License-Identifier: Apache-2.0
// Two problems whose frontiers were worked out by hand over all choices (F2 and F3 of the notes on the papers).
#pragma once

#include "core/frontier/problem.h"

namespace turnpoint::frontier::test {

inline Problem f2_chain() {
  Problem p;
  const auto node = [&](CostPoint a, CostPoint b) {
    Node n;
    n.costs.add(a);
    n.costs.add(b);
    p.nodes.push_back(n);
  };
  const auto edge = [&](std::uint32_t a, std::uint32_t b, double t00, double t01, double t10, double t11) {
    Edge e{a, b, {0, 1}, {0, 1}, 2, 2, {}};
    for (const double t : {t00, t01, t10, t11}) e.costs.add(CostPoint{0, t});
    p.edges.push_back(e);
  };
  node({4, 2}, {2, 5});
  node({6, 3}, {3, 4});
  node({5, 1}, {1, 6});
  edge(0, 1, 0, 2, 3, 1);
  edge(1, 2, 0, 4, 2, 0);
  return p;
}

inline Problem f3_diamond() {
  Problem p;
  const auto node = [&](CostPoint a, CostPoint b) {
    Node n;
    n.costs.add(a);
    n.costs.add(b);
    p.nodes.push_back(n);
  };
  const auto edge = [&](std::uint32_t a, std::uint32_t b, double t) {
    Edge e{a, b, {0, 1}, {0, 1}, 2, 2, {}};
    for (const double x : {0.0, t, t, 0.0}) e.costs.add(CostPoint{0, x});
    p.edges.push_back(e);
  };
  node({1, 4}, {3, 2});
  node({2, 3}, {4, 1});
  node({1, 5}, {2, 2});
  node({2, 2}, {3, 1});
  edge(0, 1, 2);
  edge(0, 2, 3);
  edge(1, 3, 2);
  edge(2, 3, 1);
  return p;
}

}  // namespace turnpoint::frontier::test
