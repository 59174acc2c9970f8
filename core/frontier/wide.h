// SPDX-License-Identifier: Apache-2.0
// Problems whose elimination is too wide. Some variables are split into one copy per edge (relaxation.h), which Lagrange
// multipliers draw together (multipliers.h): the lower bound. Plans are looked for among the states that the relaxed
// plans use, and among all states with those variables fixed.
#pragma once

#include <vector>

#include "core/frontier/engine.h"

namespace turnpoint::frontier::detail {

struct WideResult {
  bool infeasible = false;  ///< proven
  std::vector<HalfPlane> planes;
};

/// Fills `achieved`; it stays empty if nothing was found before the run was stopped or if there is nothing.
WideResult solve_wide(const Graph& graph, const SolveOptions& options, ThreadPool& pool, const Control& control,
                      Achieved& achieved);

}  // namespace turnpoint::frontier::detail
