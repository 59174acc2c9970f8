// SPDX-License-Identifier: Apache-2.0
// ParDNN's memory step (resources/manual/mathematics.md, 2.3): where a device lacks memory at some instant, tasks move
// away, those first that free most for the least work and traffic; a prune pass takes moves back that turned out
// unnecessary. The simulator, with memory over time, says what is lacking before and after.
//
// What moves together: a tensor is freed early only if all tasks that still read it are elsewhere, so the candidate is
// the tensor with those tasks (and their co-location groups), and its potential is what their going away frees at that
// instant, their own outputs and other inputs included, exactly.
#pragma once

#include "core/search/pardnn/refinement.h"

namespace turnpoint::pardnn {

struct MemoryOptions {
  int rounds = 24;  ///< at most; each ends with a simulation
  /// Goals tried for moves, at most. What fits is found with less than half of the default (measured on 400 random
  /// graphs of 100 to 600 tasks on 4 to 40 devices); where nothing fits, every tensor would be tried everywhere.
  double tries = 20000;
  double tries_per_task_and_device = 8;
  /// Missing bytes, 0: none, of what the candidate competes with. Nothing is tried where all devices together lack as
  /// much at some instant whatever is moved, unless moves shift times a lot: of 900 placements of random and layered
  /// graphs (20 to 1,700 tasks, 2 to 16 devices) that held more than all devices have, none ever came to fit.
  std::int64_t beat = kUnlimitedBytes;
  /// As RefinementOptions::order, to schedule anew after the last round; what it gives is kept if it fits and is
  /// faster.
  std::function<Placement(const std::vector<std::uint32_t>& device)> order;
};

/// Moves tasks until every device fits, or no round helps: then the verdict keeps its shortage. The candidate counts
/// the tasks on another device than before among what was moved. Error: cancelled; the candidate is the best until
/// then.
Expected<void> fit_memory(const ScheduleCosts& costs, placement::Judge& judge,
                          const placement::PlacementRequest& request, const MemoryOptions& options, Judged& candidate,
                          const RunContext& context);

}  // namespace turnpoint::pardnn
