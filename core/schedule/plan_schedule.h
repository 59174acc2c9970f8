// SPDX-License-Identifier: Apache-2.0
// The second clock of sharding and ratio plans (resources/manual/clocks.md): a plan becomes a schedule with overlap,
// waiting and liveness. Devices that play the same role do the same at the same time, so each role is simulated once:
// all devices of a plan without stages, or the devices of one stage. A role has a lane for computing and one for
// communication; a collective holds the communication lanes of all its members, which of one role are one lane. How
// lanes work is in core/simulation/lanes.h, what lives how long in core/simulation/liveness.h; what runs is here, so
// that anyone can recompute it:
//
//  Durations are those of the plan's own items: PlanOperator::cost (forward, backward, recompute, update, offload) and
//  the steps' time_s. Their sum is the plan's additive time; slices, views and data take no time and no lane.
//
//  Order of issue (which breaks ties, core/simulation/lanes.h 2), in three blocks: all operators forward in the model's
//  order; all operators backward in reverse order; the updates of parameters in the order in which backward came to
//  their operators. Nothing of a block computes before all computing of the block before it has ended; communication
//  may. Before an operator comes what is fetched for it, behind it what it sends on: forward, the resharding of its
//  output if it is shared or has one reader; backward, the adjoint reshardings of its inputs' gradients, then the
//  synchronisation of its parameters' gradients, at once or, where they travel in a message
//  (ReshardStep::message_bytes), behind the operator whose gradient fills it, or at the end of backward; of an update,
//  the way of its state back to the host and the gathering of its new weights. A shared tensor's gradients are summed
//  (no time) before its producer's backward and go through the adjoint of the shared resharding.
//
//  Waiting: an operator waits for its inputs as it reads them; backward also for the gradients of its outputs and for
//  all that it reads of forward. An update waits for all gradients of its operator's parameters.
//
//  Fetches are what is brought for one reader: gathered weights (ZeRO-3), a shared tensor resharded for one consumer,
//  reshardings repeated in backward (Keep::before, again), a producer's copy made again from the one kept after the
//  resharding (Keep::after), operators run again, optimizer state from the host. The
//  fetches of an operator do not begin before the last operator but one with fetches in the block has ended (the end of
//  the block before where there is none): while one computes, the next one's are on their way. Running again happens
//  once, before the first backward that needs it, from inputs as that backward finds them; the weights gathered for an
//  operator's backward serve its running again.
//
//  Memory (liveness.h): parameters and optimizer state persist. A tensor lives from the start of what makes it until
//  the last item that reads it has ended; every step of a resharding makes a new copy; a view is the tensor it shows.
//  Gradients of tensors live likewise, those of several consumers are added where the first one lies; gradients of
//  parameters live from backward (whole where they are scattered, then as shards) to the end of the update; under
//  Update::sharded_state they stay whole until then. Those that other uses of a weight give back are added to the first
//  of them, and to the owner's before anything is exchanged. New weights that are gathered before forward
//  (WeightGather) come once an iteration, before their operator's first forward; their room persists. A result of the
//  network that nobody reads lives while it is made, its gradient from the start of its producer's backward. Gathered
//  weights and visiting optimizer state are workspace.
//
//  Beside the additive accounting, which counts kept tensors and parameters' gradients from beginning to end: what it
//  counts (LoweredPlan::counted) is an upper bound of the same things here, and equal in sum unless it counts a copy
//  that no backward reads (a shared copy, or the tensor under a view, whose readers all keep copies of their own). It
//  leaves out what is there for a moment only: tensors on their way between operators, gradients of tensors,
//  intermediate copies of reshardings, whole gradients that are scattered, gathered weights, visiting state, what runs
//  again. Where the network is the bottleneck, whole gradients queue for it, and the peak may be far above the sum.
//  Under Accounting::paper parameters' gradients and optimizer state have no bytes here, either.
//
//  Pipelines: 1F1B blocks (a micro-batch forward or backward on a stage); a stage's next block computes when its block
//  before has ended computing. All tensors that cross a boundary are one send, which holds the communication lanes of
//  both stages; data is loaded by the stage that reads it. With PlanPipeline::recompute a layer runs forward once more
//  before the first backward of one of its operators, when what was issued before has been computed (of the first, when
//  gradients have come from the stage behind); what it read from outside is kept as it read it. Gradients of sharded
//  updates are scattered after every micro-batch, others are summed behind the last one, as are those of a weight that
//  two stages hold. Without a network the time is that of the closed recursion (core/search/baselines). With one it may
//  be above: there a send costs its receiver alone, here its sender's lane as well.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/plan/ratio_plan.h"
#include "core/scenario/scenario.h"
#include "core/schedule/plan_lowering.h"
#include "core/simulation/schedule.h"

namespace turnpoint {

struct SimulatedCost {
  double time_s = 0;
  std::int64_t memory_bytes = 0;  ///< peak of the role that needs most
  /// Of a ratio plan, whose devices have memory of their own: whether each has room.
  std::optional<bool> all_have_room = std::nullopt;

  bool fits(std::int64_t limit) const { return all_have_room.value_or(memory_bytes <= limit); }
  friend bool operator==(const SimulatedCost&, const SimulatedCost&) = default;
};

/// Time and memory alone; for many plans of one scenario share one PlanLowering. Of many micro-batches a few are
/// simulated: from where each further one takes the time of the one before and leaves every peak as it is, so do all.
Expected<SimulatedCost> simulate_plan(const PlanLowering& lowering, const Plan& plan);

/// The same of a ratio plan (ratio_lowering.h).
Expected<SimulatedCost> simulate_plan(const Scenario& scenario, const RatioPlan& plan);

/// The whole schedule, for timeline, memory view and traces. Error: the plan is not one of this scenario's model; of a
/// ratio plan, it has too many unlike parts.
Expected<SchedulePtr> plan_schedule(const Scenario& scenario, const Plan& plan);
Expected<SchedulePtr> plan_schedule(const Scenario& scenario, const RatioPlan& plan);

}  // namespace turnpoint
