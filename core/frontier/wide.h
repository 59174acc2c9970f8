// SPDX-License-Identifier: Apache-2.0
// Problems whose elimination is too wide: some variables are fixed (achievable plans) and, apart from that, split into
// one copy per edge (lower bound, a mini-bucket relaxation whose copies are drawn together by Lagrange multipliers).
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
