// SPDX-License-Identifier: Apache-2.0
// `manual`: a split of a transformer as its user runs it today, at the same prices as every other method.
//
//   dp=4:tp=2:cp=2:ep=4:pp=2:micro-batches=16:zero=1:shard=4:recompute:sequence-parallel
//
// vp is the number of runs of layers that every stage takes in turn (virtual stages, the interleaved schedule);
// cut=time cuts stages where the slowest is fastest instead of by the number of layers. recompute is recompute=full,
// every layer once more; recompute=selective is the cores of attentions alone, recompute=op every operator of a layer
// but the dear ones (selective_operators.h). tp, cp, ep, pp, vp and micro-batches default to 1, zero to 0, dp to what
// is left of the devices. Tensor groups are innermost, then context groups, then data parallelism, then the pipeline;
// experts lie on the innermost of the devices that share batch and sequence (core/search/baselines/parallel_axes.h,
// pipeline.h); zero shards among the data- and context-parallel devices as DeepSpeed does (fsdp.h), with shard among
// the nearest so many of them, and as often over as there are such groups (hybrid sharding: PyTorch's HYBRID_SHARD,
// arXiv 2304.11277, section 3.2.2; MiCS, arXiv 2205.00119). schedule=gpipe takes all micro-batches forward before the
// first goes backward; reduce-last sums gradients behind backward; tp-comm-overlap lets collectives of tensor groups
// run beside products (core/plan/beside_products.h). Without these, pipeline, micro-batches and recompute the point is
// a plain sum like any other and its plan can be evaluated: dp alone is `data-parallel`, tp is `megatron`'s point.
#pragma once

#include <string>
#include <string_view>

#include "core/search/baselines/pipeline.h"
#include "core/search/method/method.h"

namespace turnpoint::search {

struct ManualParameters {
  int data = 0;  ///< 0: what is left
  int tensor = 1, stages = 1, chunks = 1, micro_batches = 1, zero = 0;
  int context = 1, expert = 1;
  int shard = 0;  ///< devices that share one copy of what zero shards; 0: all that hold the same
  bool recompute = false, sequence_parallel = false;
  bool selective = false;    ///< of recompute: only the cores of attentions
  bool by_operator = false;  ///< of recompute: all but dear operators
  bool cut_by_time = false;
  bool gather_first = false;  ///< new weights of sharded updates come before the next forward
  bool forwards_first = false, reduce_last = false, beside_products = false;  ///< as ManualSplit has them
};
/// By manual_options(). Usage error naming the word that is wrong.
Expected<ManualParameters> parse_manual(std::string_view text);

/// The split on a scenario's devices. Usage error: in one sentence, with the numbers, why it cannot be. `roles` as
/// found, null where the model is no transformer (`why_not` then says why). Experts of a transformer that has none are
/// split over nobody, whatever is asked.
Expected<ManualSplit> fit_manual(const ManualParameters& parameters, const Scenario& scenario,
                                 const TransformerRoles* roles, const std::string& why_not);

Method manual_method();

/// What every operator of a legal split does about its state, on the machine of one stage.
MemoryChoice update_choice(const ManualSplit& split, const Scenario& one_stage);

}  // namespace turnpoint::search
