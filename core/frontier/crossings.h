// SPDX-License-Identifier: Apache-2.0
// Plans between two neighbours on the hull: up to some node the choices of one, from there on those of the other.
//
// Neighbours on the convex hull are both best at one slope, and so is every mixture of them whose parts do not meet.
// Where nodes are in the order of the network, a mixture of a front and a back meets at few edges only: a deep network
// has near-optimal plans all along a side of its hull, and they cost next to nothing to find. This is what sums of many
// small lists lose first when their points are thinned out.
#pragma once

#include "core/base/parallel.h"
#include "core/frontier/bounds.h"
#include "core/frontier/problem.h"

namespace turnpoint::frontier::detail {

/// Adds such plans, at most about `count` of them, evenly along the frontier. Deterministic on any number of threads.
void add_crossings(const Problem& problem, Achieved& achieved, std::size_t count, ThreadPool& pool);

}  // namespace turnpoint::frontier::detail
