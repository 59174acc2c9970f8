// SPDX-License-Identifier: Apache-2.0
// The algebra of cost frontiers (resources/manual/mathematics.md, 1.2): lists of (memory, time) with memory strictly
// rising and time strictly falling. Dominance is exact `<` on doubles, no epsilons. These are the plain definitions;
// the engine has faster kernels and is checked against them.
#pragma once

#include <span>
#include <vector>

#include "core/frontier/problem.h"

namespace turnpoint::frontier {

using CostList = std::vector<CostPoint>;

/// Algorithm 1 of the paper with the sort key (memory, time): what is left is dominated by nothing. O(n log n).
CostList reduce(CostList points);
/// Every sum of one point of `a` and one of `b`, reduced. Memory sums must stay below 2^63.
CostList product(const CostList& a, const CostList& b);
/// All points of both, reduced.
CostList unite(const CostList& a, const CostList& b);
/// The higher of two staircases everywhere: where neither of two bounds is exceeded, this one is not.
CostList higher(const CostList& a, const CostList& b);
/// Those of the lines that are the highest somewhere over memories from 0, in the order in which they are.
std::vector<BoundLine> upper_envelope(std::vector<BoundLine> lines);
/// The lower convex hull of a staircase, extended by its least time: below these lines lies nothing that it bounds.
std::vector<BoundLine> lines_below(const CostList& staircase);
/// The least time that the lines leave to a plan of at most this memory, bytes; 0 without lines.
double time_above(std::span<const BoundLine> lines, double memory);
/// Memory strictly rising, time strictly falling.
bool is_frontier(const CostList& points);
/// Least time of the staircase at this much memory; infinity below its first point.
double time_at(const CostList& staircase, std::int64_t memory);

}  // namespace turnpoint::frontier
