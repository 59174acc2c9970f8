// SPDX-License-Identifier: Apache-2.0
// Nodes that no edge of their level touches have no place in a drawing by ranks: all of them would stand in one
// column, thousands of pixels high. They are set as a grid below what the edges hold together, and are not part of what
// the layout process is asked.
#pragma once

#include <vector>

#include "views/graph/level_layout.h"

namespace turnpoint::views {

/// By node: no edge touches it. All false where there are so few that their column does no harm.
std::vector<bool> loose_nodes(const LevelRequest& level);

/// The level without its loose nodes; edges keep their order.
LevelRequest without_loose(const LevelRequest& level, const std::vector<bool>& loose);

/// The whole level: `held`, the layout of without_loose(), and below it the loose nodes in their order, row by row,
/// within `width` or the width of `held`, whichever is more. Columns are aligned where the nodes' widths are much
/// alike.
LevelLayout with_loose_grid(const LevelLayout& held, const LevelRequest& level, const std::vector<bool>& loose,
                            double width);

}  // namespace turnpoint::views
