// SPDX-License-Identifier: Apache-2.0
// Several results of one scenario as one.
#pragma once

#include <string>
#include <vector>

#include "core/frontier/pareto.h"
#include "core/plan/result.h"

namespace turnpoint::search {

/// The Pareto-optimal points of several results of one scenario, each with its plan; at least one result. Of equal
/// points the earlier result's stays. Nothing is said of better plans than these: unite_certified() does.
std::shared_ptr<Result> unite(const std::string& method, const std::vector<ResultPtr>& results, double search_s);

/// The same of results that may each leave out what another reaches, with what is certain of the union: exact where all
/// are, no better anywhere than the least of their lower bounds; not certified where one of them is not. `earlier`:
/// empty, or by result an answer of the same search before it, whose points and bound count as well. Slower plans than
/// `slowest_considered_s` are there for small devices.
std::shared_ptr<Result> unite_certified(const std::string& method, const std::vector<ResultPtr>& results,
                                        const std::vector<ResultPtr>& earlier, double slowest_considered_s,
                                        double search_s);

/// Memory and time of its points.
frontier::CostList costs_of(const Result& result);

/// The largest (T(M) - L(M)) / T(M) of what is achieved, memory rising and time falling, above a result's lower bound.
/// Infinite where nothing is certain of the result.
double gap_above(const Result& result, const frontier::CostList& achieved);

}  // namespace turnpoint::search
