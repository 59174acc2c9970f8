// SPDX-License-Identifier: Apache-2.0
// ParDNN's third step (resources/manual/mathematics.md, 2.2): clusters, then tasks, then the tasks on the emulated
// critical path are tried on other devices. After every round the simulator decides: what is not faster is undone, so
// the makespan never rises.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/search/pardnn/clusters.h"
#include "core/search/placement/judge.h"

namespace turnpoint::pardnn {

/// A candidate in the making: devices and order, and what the simulator said of them.
struct Judged {
  Placement placement;
  placement::Verdict verdict;
  std::string origin = {};  ///< what it began as, in words
  std::size_t moved = 0;    ///< tasks that memory stages put elsewhere

  bool is_there() const { return !placement.device.empty(); }
};
/// The candidate as a search's answer.
SimulatedPlacement answer_of(Judged&& judged, std::vector<PlacementStage>&& stages);

struct RefinementOptions {
  int path_rounds = 4;  ///< rounds along the critical path
  /// The order in which devices that changed run their tasks; empty: as they become ready.
  std::function<Placement(const std::vector<std::uint32_t>& device)> order;
  /// What else is done with a candidate of another order, before it is compared; empty: nothing.
  std::function<Expected<void>(Judged&)> reorder;
};

/// `clusters` may be null: then no cluster moves. The candidate keeps its origin and what was moved. Devices of whole
/// co-location groups only. The judge simulates. Error: cancelled; the candidate is the best until then.
Expected<void> refine(const ScheduleCosts& costs, const Clusters* clusters, placement::Judge& judge,
                      const RefinementOptions& options, Judged& candidate, const RunContext& context);

}  // namespace turnpoint::pardnn
