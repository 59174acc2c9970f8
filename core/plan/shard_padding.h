// SPDX-License-Identifier: Apache-2.0
// By how much shards of a parameter are filled up, as the evaluator sees it: apart from what searches count
// (GroupElements of core/cost/parameters.h).
#pragma once

#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Elements that travel for one of the parameter's, 1 or more. `layout`: of its gradient; `whole`: axes that do not
/// split it.
double shard_padding(const Scenario& scenario, const Mesh& mesh, const MemoryChoice& choice, const Tensor& tensor,
                     const Layout& layout, std::uint32_t whole);

}  // namespace turnpoint
