// SPDX-License-Identifier: Apache-2.0
// The searcher of the methods that solve a frontier problem over configurations.
#pragma once

#include <memory>
#include <string>

#include "core/search/frontier_tracking/structure.h"
#include "core/search/frontier_tracking/sweep.h"

namespace turnpoint::search {

enum class Objective { frontier, least_time };

/// `sweep`, if it is part of one, is read when it runs and outlives it; null: it is alone.
std::unique_ptr<Searcher> search_configurations(std::string method, SearchSpace space, Objective objective,
                                                Sweep* sweep = nullptr, const Enough& enough = {});

}  // namespace turnpoint::search
