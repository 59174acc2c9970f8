// SPDX-License-Identifier: Apache-2.0
// The mesh on which a search looks for plans. Layouts multiply with every axis: 76 of a tensor on 16 devices, more than
// 1,300 on 64. Beyond four axes neighbours of one level are therefore taken together, so that both lie on the same
// dimension: 8 nodes x 8 devices are searched as 4 2 x 4 2 or, for models whose tables would still be too large, as
// 8 x 4 2; for small models on as many axes as can be afforded. What is lost are plans that use a level in more ways
// than it has axes. Plans themselves always name the real axes.
#pragma once

#include <string>

#include "core/plan/plan.h"

namespace turnpoint::search {

inline constexpr int kSearchAxes = 4, kFewSearchAxes = 3;

/// make_mesh(); where that has more than kSearchAxes axes, neighbours of one level merged until `axes` are left.
Mesh search_mesh(const Cluster& cluster, int axes = kSearchAxes);

/// Over what a search of `searched` is exact, for people; empty where that is the cluster's whole mesh.
std::string merged_axes_note(const Cluster& cluster, const Mesh& searched);

/// The plan on `full`, whose axes those of the plan's mesh were merged from.
Plan on_full_mesh(Plan plan, const Mesh& full);

}  // namespace turnpoint::search
