// SPDX-License-Identifier: Apache-2.0
// The structure of a solution by variable elimination, without any cost: which tables are combined with which, and how.
// Three algebras run over the same structure: scalars (Lagrangian bounds), frontier lists (exact) and frontier lists of
// rounded memory (coarse).
//
// Eliminating a variable v with states s: P0[s] = costs of v; each factor F on v is then absorbed,
//   P'[X'][s'] = union over the s with suffix s' of  P[X][s] (x) F[y][class of s in F]
// where X' joins the outer classes X of P and y of F, and the suffix s' forgets what only F looks at. So a
// configuration is visited once per class of the first factor, and later factors see classes only
// (resources/manual/engine.md). Node, edge and branch elimination of the paper (Eq. 4 to 6) are all this one step.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/frontier/graph.h"
#include "core/frontier/policy.h"

namespace turnpoint::frontier::detail {

/// Index arithmetic of one step; shared by all steps that have the same.
struct Shape {
  std::vector<std::uint32_t> p_row;           ///< per outer index X': row of P
  std::vector<std::uint32_t> f_base;          ///< per outer index X': start in F
  std::uint32_t p_columns = 0;                ///< suffixes of P; entry of P = p_row * p_columns + item_s
  std::vector<std::uint32_t> group_begin;     ///< per suffix s' of the result: range of items
  std::vector<std::uint32_t> item_s, item_f;  ///< suffix in P, offset in F
  std::vector<std::uint32_t> by_f;            ///< outer indices sorted by f_base, for kernels that re-use rows of F

  std::size_t outer() const { return p_row.size(); }
  std::uint32_t groups() const { return static_cast<std::uint32_t>(group_begin.size()) - 1; }
  std::size_t entries() const { return outer() * groups(); }
  std::size_t terms() const { return outer() * item_s.size(); }
  bool same_indices(const Shape& o) const {
    return p_row == o.p_row && f_base == o.f_base && p_columns == o.p_columns && group_begin == o.group_begin &&
           item_s == o.item_s && item_f == o.item_f;
  }
};

struct Step {
  std::uint32_t p = 0, f = 0, out = 0;  ///< tables
  std::uint32_t shape = 0;
};

/// Tables: first the variables' leaves, then the factors', then the unit table, then one per step.
struct Elimination {
  std::size_t variables = 0, factors = 0;
  std::vector<Step> steps;
  std::vector<std::shared_ptr<const Shape>> shapes;
  std::uint32_t root = 0;  ///< table with one entry
  bool too_wide = false;   ///< some table would exceed the limit; then `stuck` names a variable to fix
  std::uint32_t stuck = 0;
  std::size_t largest_table = 0, terms = 0;

  std::size_t leaves() const { return variables + factors; }
  std::uint32_t unit_table() const { return static_cast<std::uint32_t>(leaves()); }
  std::size_t tables() const { return leaves() + 1 + steps.size(); }
};

/// Greedy minimum-work order. Deterministic. `max_table` bounds the entries of every table, 16 times that the products
/// of one step. After a stop request the result is incomplete and must not be used.
Elimination eliminate(const Graph& graph, std::size_t max_table, std::stop_token stop = {}, const Policy& policy = {});

}  // namespace turnpoint::frontier::detail
