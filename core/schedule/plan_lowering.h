// SPDX-License-Identifier: Apache-2.0
// A sharding plan as the items that one device of each role runs, in the order in which a program would issue them,
// with what waits for what and which bytes live meanwhile. The rules are in core/schedule/plan_schedule.h; this is what
// schedules, simulated points and the tests are made of.
#pragma once

#include <memory>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/tensor_use.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/simulation/lanes.h"
#include "core/simulation/liveness.h"

namespace turnpoint {

enum class PlanTaskKind : std::uint8_t {
  forward,
  backward,
  again,          ///< an operator runs again in backward
  update,         ///< of an operator's parameters
  reshard,        ///< a step of a resharding on the way forward
  reshard_back,   ///< a step of its adjoint: the gradient's way
  reshard_again,  ///< a forward step repeated in backward, or one back to the producer's copy
  weights,        ///< sharded weights are gathered for a reader
  gradients,      ///< a step of the gradients' synchronisation
  new_weights,    ///< updated weights are gathered
  from_host,
  to_host,
  send,       ///< to the next stage
  send_back,  ///< gradients to the stage before
  tied_sum,   ///< gradients of a weight that two stages hold
  turn,       ///< no work: an instant that others wait for
};

struct PlanTask {
  PlanTaskKind kind = PlanTaskKind::forward;
  ReshardMove move = ReshardMove::slice;  ///< of steps
  OperatorId op;                          ///< whose it is; of a resharding the consumer, or the producer if shared
  TensorId tensor;                        ///< what a resharding moves
  std::uint32_t role = 0;                 ///< the device it runs on; of a send the receiver
  std::int32_t micro_batch = 0;
  double bytes = 0;  ///< that a collective moves to each device
};

struct LoweredPlan {
  struct Role {
    std::int64_t persistent_bytes = 0;   ///< parameters and optimizer state
    std::uint32_t devices = 1;           ///< that play it
    std::vector<std::uint32_t> members;  ///< which of the cluster, rising; of ratio plans alone
  };
  LaneItems items;  ///< role r computes on lane 3 r and communicates on 3 r + 1 in its node, 3 r + 2 between nodes
  std::vector<PlanTask> tasks;
  Buffers buffers;
  std::vector<char> counted;  ///< by buffer: the additive accounting counts it (gradients of parameters, kept tensors)
  std::vector<Role> roles;

  std::vector<std::int64_t> persistent() const;
};

/// Of its items: the cluster's; 1 where costs are counted as the papers do.
double overlap_slowdown(const Scenario& scenario);

/// What becomes of a shared tensor whose readers all keep copies of their own: the plan counts it, no backward reads
/// it.
enum class UnreadCopies : std::uint8_t { freed, kept };

/// What of a model does not depend on the plan; made once per scenario. Immutable.
class PlanLowering {
 public:
  /// The scenario must outlive it.
  explicit PlanLowering(const Scenario& scenario);
  ~PlanLowering();

  /// Error: the plan is not one of this scenario's model (sizes, reshardings nobody asked for, copies that are not
  /// there). Thread-safe.
  Expected<LoweredPlan> lower(const Plan& plan, UnreadCopies unread = UnreadCopies::freed) const;
  const Scenario& scenario() const { return scenario_; }

 private:
  struct Facts;
  const Scenario& scenario_;
  std::unique_ptr<const Facts> facts_;
};

}  // namespace turnpoint
