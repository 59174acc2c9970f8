// SPDX-License-Identifier: Apache-2.0
// Kernels that engines launch beside those that compute an operator, each a pass through memory of its own, whatever
// their compilers fuse. Counted from what public engines call, none is fitted; runs that judge the presets (runs_bench,
// resources/validation/h100.md) were not looked at for any number here.
#pragma once

#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"
#include "core/cost/parameters.h"
#include "core/model/model.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Bytes that further kernels read and write on a device, and how many of them there are.
struct SideKernels {
  double bytes = 0;
  int kernels = 0;
};

/// Beside one phase of an operator that is priced by its FLOP and bytes (a measured time has them in it):
///  - a bias's gradient is summed over rows by a kernel that reads the output's gradient once more (autograd of addmm:
///    grad.sum(0)); in 8 bits it is a by-product of the cast;
///  - rotary positions are a kernel of their own between a product and attention where kernels are fused, which reads
///    and writes what the product made, and its gradient in backward (Transformer Engine's fused rope, a compiler's
///    fusion behind a library's product).
/// Nothing under the papers' accounting.
SideKernels side_kernels(const Scenario& scenario, const Operator& op, const Configuration& split, const Mesh& mesh,
                         bool backward);

/// Bytes that a device goes through around the exchange of one group of parameters, where messages are PyTorch's
/// (NCCL, RCCL) and more than one device takes part.
struct ExchangeCopies {
  /// Forward and backward of each micro-batch: of rows that fully_shard gathers, the shard copied into the message and
  /// what came copied out of it, once for every read, half of them in each phase; of gradients that every micro-batch
  /// scatters, the copy into the message in the precision that travels.
  double forward = 0, backward = 0;
  /// An iteration: gradients that are summed once are scaled where they lie, or copied into a message and back.
  double once = 0;
};
ExchangeCopies exchange_copies(const Scenario& scenario, const ParameterGroup& group, const GroupElements& elements,
                               const MemoryChoice& choice, std::int64_t shards, const ParameterTraffic& traffic);

}  // namespace turnpoint
