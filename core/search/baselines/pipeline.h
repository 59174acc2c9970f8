// SPDX-License-Identifier: Apache-2.0
// Cost of a hand-made split with a pipeline, micro-batches or per-layer recomputation.
//
// Stages are consecutive layers, as many on each as engines have it (equal_stages), or cut where the slowest stage is
// fastest; what comes before the first layer goes with the first stage, what comes behind the last one with the last.
// With `chunks` every stage has several runs of layers and takes them in turn (interleaved 1F1B, pipeline_order.h).
// Each stage runs on devices / stages devices, whole nodes or parts of one, stages one behind the other, outermost in
// the cluster. One micro-batch on one stage costs what `ft`'s prices say for its operators, forward and backward apart;
// the 1F1B schedule (or GPipe's) puts micro-batches and stages together.
//
//  - Between stages, every tensor that crosses is sent device to device, its gradient back; the receiving stage is busy
//    for that long. Stages send at the same time and share a node's network; devices of a tensor group send a part
//    each.
//  - Gradients are summed and parameters updated once, behind a stage's last backward. From zero=2 on, gradients are
//    scattered after every micro-batch, and with zero=3 weights are gathered for every forward and every backward.
//  - A tied weight whose two uses lie in different stages is stored, updated and summed (all-reduce between the two) in
//    both, as Megatron does with its embedding.
//  - Memory of a stage: its parameters, gradients and optimizer state, and what backward reads, once for each of the
//    min(stages - stage, micro-batches) micro-batches in flight (interleaved: as its order of steps says). With
//    recomputation: the inputs of its layers for each of those, everything else of one layer once; what stands outside
//    of layers is kept. Layers then run forward again, their collectives included. With selective recomputation
//    (Korthikanti et al. 2022, arXiv 2205.05198) only the cores of attentions run again: scores, softmax and their
//    product with the values, with all between them. What they make is kept of one core at a time, but for the product,
//    which the next operator reads.
//  - Time is that of the stage that ends last; compute_s is what that stage computes, network_s all the rest: its
//    collectives, its receives, and the bubble, in which it waits for others. memory_bytes is the largest stage's.
#pragma once

#include "core/base/progress.h"
#include "core/cost/transformer_roles.h"
#include "core/plan/plan.h"
#include "core/plan/result.h"
#include "core/search/baselines/parallel_axes.h"

namespace turnpoint::search {

/// A hand-made split; `data` x `tensor` x `context` x `stages` devices.
struct ManualSplit {
  int data = 1, tensor = 1, stages = 1, micro_batches = 1, zero = 0;
  int context = 1;
  int expert = 1;  ///< devices that share the experts, of `data` x `context`
  bool recompute = false, sequence_parallel = false;
  bool selective = false;     ///< what is computed again is the core of every attention, not its layer
  bool by_operator = false;   ///< selective_operators() run again, each by itself, whatever `recompute` says of layers
  int shard = 0;              ///< devices that share one copy of what zero shards, of `data` x `context`; 0: all
  bool gather_first = false;  ///< new weights of zero 1 and 2 are gathered before forward, not behind the update
  int chunks = 1;             ///< runs of layers on every stage (virtual stages)
  enum class Cut : std::uint8_t { layers, time } cut = Cut::layers;
  /// What a schedule has of it.
  void tell(PlanPipeline& laid_out) const {
    laid_out.stages = stages, laid_out.micro_batches = micro_batches, laid_out.chunks = chunks;
    laid_out.recompute = recompute, laid_out.selective = selective;
    laid_out.forwards_first = forwards_first, laid_out.sums_behind = sums_behind;
    laid_out.beside_products = beside_products;
  }
  GroupSizes groups() const { return {tensor, context, expert}; }
  bool forwards_first = false;   ///< GPipe instead of 1F1B
  bool sums_behind = false;      ///< gradients are summed behind backward, not while it runs
  bool beside_products = false;  ///< collectives of tensor groups run beside products (core/plan/beside_products.h)
  bool scheduled() const { return stages > 1 || micro_batches > 1 || recompute || sums_behind || beside_products; }
};

/// Cuts `times` (one per layer) into `stages` runs whose largest sum is least; returns the first layer of each.
std::vector<int> balanced_stages(const std::vector<double>& times, int stages);
/// As many layers in each run; where that cannot be, with what stands before and behind the layers counted as one layer
/// each. Empty: neither can be.
std::vector<int> equal_stages(int layers, int stages);

/// The one point of a split that is legal and scheduled(). `roles` may be null where only micro_batches > 1.
Expected<ResultPtr> pipeline_point(const ScenarioPtr& scenario, const TransformerRoles* roles, const ManualSplit& split,
                                   const RunContext& context);

/// The one point of a pipeline whose operators cost something else now: stages, micro-batches, splits and what runs
/// again stay. `plan` is on the mesh of one stage (core/plan/one_stage.h), `one_stage` that stage's scenario. Error:
/// the plan has stages, and the model no layers that could be told apart.
Expected<ResultPtr> pipeline_anew(const ScenarioPtr& scenario, const Scenario& one_stage, const Plan& plan);

}  // namespace turnpoint::search
