// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel x data-parallel transformer splits as Megatron-LM does them (Shoeybi et al. 2019, arXiv 1909.08053):
// in every layer the first products are split by columns (heads, inner channels) and the second by rows, so that a
// layer sums its result twice in forward and twice in backward; embedding and logits are split over the vocabulary
// where its size allows (Megatron pads it, we do not and say so); norms and the residual stream are repeated in a
// tensor group, or with `sequence-parallel` split over the sequence (Korthikanti et al. 2022, arXiv 2205.05198): of
// what the first products read gathered, a device keeps its part and gathers it again in backward. Tensor groups are
// innermost, inside a node; the rest is data parallel.
//
// One plan for every tensor group size that divides the devices of a node, the heads and the inner channels, and whose
// data-parallel size divides the batch; of them the Pareto-optimal ones. With `recompute=selective` all of them compute
// the cores of attentions again (pipeline.h).
#pragma once

#include <string>

#include "core/search/baselines/parallel_axes.h"
#include "core/search/method/method.h"

namespace turnpoint::search {

Method megatron_method();

/// Why a transformer cannot be split by tensor groups of `tensor` devices; empty: it can.
std::string tensor_parallel_refusal(const TransformerRoles& roles, int tensor, bool sequence_parallel);
/// The point of one split of all devices, every operator updating its parameters by `choice`; with `again`,
/// selective_operators() run again in backward. Of what context groups gather, too, a device keeps its part.
Expected<ResultPtr> grouped_point(const std::string& method, const ScenarioPtr& scenario, const TransformerRoles* roles,
                                  const GroupSizes& groups, bool sequence_parallel, const MemoryChoice& choice,
                                  const RunContext& context, bool again = false);

}  // namespace turnpoint::search
