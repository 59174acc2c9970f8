// SPDX-License-Identifier: Apache-2.0
// A plan on another mesh: merged axes taken apart again, a stage's axes among those of the machine, and back.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace turnpoint {

/// `from`, by axis of `mesh`: the axis of the plan's own mesh that it lies on; -1: none, work along it is repeated.
Plan on_mesh(Plan plan, const Mesh& mesh, const std::vector<int>& from);

}  // namespace turnpoint
