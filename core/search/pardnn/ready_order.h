// SPDX-License-Identifier: Apache-2.0
// Orders that let a device run what is ready. A list schedule's order is planned without the waits of transfers for one
// another; kept as it stands, a task whose input is late holds up everything behind it.
#pragma once

#include "core/search/pardnn/refinement.h"

namespace turnpoint::pardnn {

/// How the longest way from a task to the end, by which it is ranked, counts transfers.
enum class Ways : std::uint8_t {
  all_transfers,  ///< also between tasks that share a device
  both,           ///< that, and only those that are made: two simulations
};

/// The candidate's devices run, whenever they are idle, the ready task of the longest way to the end. Kept where that
/// is faster, but not where it no longer fits; the origin then says so. The judge simulates what is kept. At least one
/// task; makespan is the objective.
Expected<void> run_as_ready(const ScheduleCosts& costs, placement::Judge& judge, Ways ways, Judged& candidate);

}  // namespace turnpoint::pardnn
