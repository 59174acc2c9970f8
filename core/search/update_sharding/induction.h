// SPDX-License-Identifier: Apache-2.0
// How often the branches of a training program are taken, estimated from how their predicates use the number that its
// loop counts: `i mod k == 0` holds in one of k iterations.
// Source: Xu et al., arXiv 2004.13336, 3 (branches that are taken seldom).
#pragma once

#include "core/search/update_sharding/program.h"

namespace turnpoint::update_sharding {

struct RunFrequency {
  double times = 1;     ///< per iteration of the innermost loop around it, at most; of the entry 1
  bool branch = false;  ///< it is a branch, or is called in one
};

/// Of every computation of a checked program. A branch whose predicate is not understood is taken to run every time;
/// one that never runs has 0. Of a branch in a branch: the less of both.
IdVector<ComputationId, RunFrequency> run_frequencies(const Program& program);

}  // namespace turnpoint::update_sharding
