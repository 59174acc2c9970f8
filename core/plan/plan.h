// SPDX-License-Identifier: Apache-2.0
// A sharding plan: a configuration per operator and a path per resharding, with itemised costs. Plans are plain values;
// this header is the data, core/plan/evaluator.h the independent arithmetic over it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cost/breakdown.h"
#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"
#include "core/cost/parameters.h"
#include "core/cost/resharding.h"
#include "core/model/model.h"

namespace turnpoint {

/// Which copies of a tensor backward keeps where its producer's and consumer's layouts differ.
enum class Keep : std::uint8_t {
  none,    ///< nobody's backward reads it through this resharding
  before,  ///< only the copy before; backward repeats the forward resharding
  after,   ///< the resharded copy alone; where the producer's backward reads its own, that is made from it again
  both,    ///< both copies are kept because somebody needs each
  again,   ///< no copy: the producer runs again in backward, and the resharding with it
};
const char* to_string(Keep keep);

struct PlanOperator {
  OperatorId op;
  Configuration split;
  MemoryChoice choice;
  CostBreakdown cost;                      ///< its own: parameters, kept outputs, compute, gradient synchronisation
  std::vector<ParameterSteps> parameters;  ///< by group, as parameter_groups() orders them
  int stage = 0, chunk = 0;                ///< of the plan's pipeline
  OperatorId follows;                      ///< the layer whose split it takes over; invalid: its split is its own
};

/// What steps of a resharding are for. All but `forward` are carried out in backward, in this order.
enum class ReshardRole : std::uint8_t { forward, repeated, restored, gradient };
inline constexpr std::array kReshardRoles = {ReshardRole::forward, ReshardRole::repeated, ReshardRole::restored,
                                             ReshardRole::gradient};

/// One resharding of one tensor, forward and in backward. `consumer` invalid: made once and shared by all consumers of
/// the tensor that want it.
struct PlanReshard {
  TensorId tensor;
  OperatorId producer, consumer;
  Layout from, to;
  std::vector<ReshardStep> forward;   ///< from `from` to `to`
  std::vector<ReshardStep> repeated;  ///< the same once more, where keep is `before` or `again`
  std::vector<ReshardStep> restored;  ///< from the copy after the resharding, which alone is kept (Keep::after), to
                                      ///< the producer's own, which its backward reads
  std::vector<ReshardStep> gradient;  ///< of the gradient, from `to` to `from` without partial sums
  Keep keep = Keep::none;
  CostBreakdown cost;
  double time_s() const { return cost.time_s(); }

  const std::vector<ReshardStep>& steps(ReshardRole role) const;
  std::vector<ReshardStep>& steps(ReshardRole role);
  /// All that is carried out in backward, one after the other: as files hold it, and as reports number its steps.
  std::vector<ReshardStep> backward() const;
  /// The number among them of a role's first step.
  std::size_t first_in_backward(ReshardRole role) const;
  /// Takes backward() apart again; `forward`, `keep` and `from` are there. Steps that no role explains are the
  /// gradient's.
  void set_backward(std::vector<ReshardStep> steps);
};

/// A schedule laid over a plan: stages of consecutive layers on parts of the machine, the batch cut into micro-batches
/// that pass through them one after another. Configurations, layouts and steps are then those of one micro-batch on one
/// stage; the axes along which stages lie are repeats.
struct PlanPipeline {
  int stages = 1, micro_batches = 1;
  /// Runs of layers that each stage has: run c of stage s (PlanOperator::chunk, stage) is the (c * stages + s)-th of
  /// all in the order in which a micro-batch passes through them (pipeline_order.h); 1: stages are one behind the
  /// other.
  int chunks = 1;
  bool recompute = false;  ///< parts named by layer_of run forward again in backward; a layer keeps its inputs only
  bool selective = false;  ///< those parts are the cores of attentions: scores, softmax, product with the values
  /// A stage takes all micro-batches forward before the first goes backward (GPipe), not one of each in turn (1F1B).
  bool forwards_first = false;
  /// Gradients that are summed once an iteration are summed when the stage's last backward has ended, not while it
  /// runs: Megatron-LM without --overlap-grad-reduce. The additive clock is the same.
  bool sums_behind = false;
  /// Collectives of tensor groups run beside products (core/plan/beside_products.h); time_s of their steps is what then
  /// shows of them.
  bool beside_products = false;
  double bubble_s = 0;  ///< the slowest stage waits this long for others
  std::vector<std::int64_t> stage_memory_bytes;

  /// Gradients of a weight that two stages hold, summed between them behind the last backward. The user's stage does
  /// for its copy what the owner's does for its own (tied_copy.h), and holds as much of it.
  struct TiedSum {
    int owner = 0, user = 0;  ///< stages
    OperatorId owner_op, user_op;
    double time_s = 0;                                                          ///< between both
    std::int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;  ///< of the user's stage
    std::vector<ReshardStep> gather;        ///< of sharded weights: one all-gather per read by the user
    std::vector<ReshardStep> sync, spread;  ///< of its gradient before the sum between both; of its new weights
    double update_s = 0;                    ///< of its copy
  };
  std::vector<TiedSum> tied;
  std::vector<double> send_s, send_back_s;  ///< of one micro-batch over the boundary behind each run but the last
  std::vector<int> layer_of;                ///< by operator; -1: outside of layers (selective: of cores)
  ModelPtr micro_batch;                     ///< the model of one micro-batch

  int runs() const { return stages * chunks; }
  int run_of(const PlanOperator& op) const { return op.chunk * stages + op.stage; }
};

struct Plan {
  Mesh mesh;
  std::vector<PlanOperator> operators;  ///< one per model operator, same order
  std::vector<PlanReshard> reshards;    ///< only those that move something or keep a copy
  CostBreakdown cost;                   ///< sum over operators and reshards; of a pipeline: memory of the largest
                                        ///< stage, time of the slowest, its waiting as NetworkPart::bubble
  std::optional<PlanPipeline> pipeline;

  /// Parts of the batch that go through one after the other.
  int micro_batches() const { return pipeline ? pipeline->micro_batches : 1; }
};

}  // namespace turnpoint
