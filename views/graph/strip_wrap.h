// SPDX-License-Identifier: Apache-2.0
// Breaks a level that is wider than its place into strips below each other, as text is broken into lines.
#pragma once

#include "views/graph/level_layout.h"

namespace turnpoint::views {

/// Cuts between columns of nodes, where few edges run; a cut edge leaves its strip at the right, runs back between the
/// strips and enters the next from the left, without crossing the other cut edges. Narrow levels come back as they
/// were.
/// `alone`: nodes much higher than the others get a strip of their own where they are alone in their column.
LevelLayout wrap_into_strips(const LevelLayout& level, double max_width, bool alone = false);

}  // namespace turnpoint::views
