// SPDX-License-Identifier: Apache-2.0
// What shards of an update have to sum: norms of layer-wise optimizers, rows and columns of factored moments.
#pragma once

#include <cstdint>
#include <vector>

#include "core/scenario/scenario.h"

namespace turnpoint {

/// Elements that the update of one parameter of this shape sums over its shards, round by round: a round needs the sums
/// of those before it (resources/manual/mathematics.md, 5.3). Empty: the update is elementwise.
std::vector<double> summed_elements(Optimizer optimizer, const std::vector<std::int64_t>& shape);

/// Adds a list of rounds to another one.
void add_rounds(std::vector<double>& rounds, const std::vector<double>& more);

}  // namespace turnpoint
