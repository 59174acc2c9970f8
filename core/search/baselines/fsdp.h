// SPDX-License-Identifier: Apache-2.0
// Fully-sharded data parallelism: the batch is split over all devices; weights, gradients and optimizer state over all
// of them or, with `group=node` or `shard=N`, over those of a node or the nearest N (hybrid sharding), other groups
// then holding copies.
//
// Stages as DeepSpeed's ZeRO numbers them (Rajbhandari et al. 2020, arXiv 1910.02054), for n bytes of weights and of
// gradients on g devices, what a device receives in one iteration:
//   zero=1  optimizer state sharded        reduce-scatter n + all-gather n   (twice n (g-1)/g, as an all-reduce)
//   zero=2  and gradients sharded          the same
//   zero=3  and weights sharded (default)  all-gather n before forward, again before backward, reduce-scatter n
#pragma once

#include "core/cost/memory_choice.h"
#include "core/search/method/method.h"

namespace turnpoint::search {

/// What an operator does at a stage 0 to 3, sharding among the devices of `axes`. At stage 3 a shard is whole rows, as
/// PyTorch's fully_shard has it.
MemoryChoice zero_choice(int stage, std::uint32_t axes, Accounting accounting);

/// Parameters "zero=2:group=node:shard=8:recompute=selective"; the last computes the cores of attentions again in
/// backward, as `manual` does (pipeline.h). Its result says where the batch is over fewer devices than there are.
Method fsdp_method();

}  // namespace turnpoint::search
