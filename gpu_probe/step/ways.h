// SPDX-License-Identifier: Apache-2.0
// Collectives as the plan has them: a double tree, directly to all, or inside the nodes and then between them, besides
// rings (resources/manual/costs.md, 4). All are made of exchanges between two ranks. Over all members each receives as
// many elements as a ring does: (n - 1) x length in a gather or scatter, twice that in an all-reduce.
#pragma once

#include "core/plan/plan.h"
#include "gpu_probe/step/communicator.h"

namespace turnpoint::step {

/// The members of a group are those of one node after those of the other, `inside` of them in each.
struct CollectiveWay {
  Algorithm algorithm = Algorithm::ring;
  std::size_t inside = 1;
};
/// Of a step of a plan. What only the switch of a node or the library can do goes in a ring.
CollectiveWay way_of(const Mesh& mesh, const ReshardStep& step);

/// As those of the communicator, which carries them out itself where it brings collectives of its own.
Expected<void> all_reduce(Communicator& communicator, const CollectiveWay& way, const Group& group, Numbers data);
Expected<void> all_gather(Communicator& communicator, const CollectiveWay& way, const Group& group, const Cuts& cuts,
                          Numbers data);
Expected<void> reduce_scatter(Communicator& communicator, const CollectiveWay& way, const Group& group,
                              const Cuts& cuts, Numbers data);

}  // namespace turnpoint::step
