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

/// Beside one phase of an operator that is priced by its FLOP and bytes. A time that was measured, or fitted to such,
/// is taken as it is: this program's own steps launch no kernels beside it.
///  - a bias's gradient is summed over rows by a kernel that reads the output's gradient once more (autograd of addmm:
///    grad.sum(0)); in 8 bits it is a by-product of the cast, on TPUs of whatever makes that gradient (XLA fuses sums
///    with what they sum);
///  - rotary positions are a kernel of their own between a product and attention where kernels are fused, which reads
///    and writes what the product made, and its gradient in backward (Transformer Engine's fused rope, a compiler's
///    fusion behind a library's product).
/// Nothing under the papers' accounting.
SideKernels side_kernels(const Settings& settings, Library library, const Model& model, const Operator& op,
                         bool backward, double output_bytes);
/// The same of an operator split so.
SideKernels side_kernels(const Scenario& scenario, const Operator& op, const Configuration& split, const Mesh& mesh,
                         bool backward);

/// Bytes that a device reads and writes in an iteration before it sums the gradients of one group of parameters with
/// others, where messages are PyTorch's (NCCL, RCCL): engines scale them where they lie (Megatron-LM's
/// gradient_scaling_factor), or copy them into a message (DDP, and fully_shard in front of a scatter). Once, also where
/// every micro-batch scatters its own.
double scaling_bytes(const Scenario& scenario, const ParameterGroup& group, const GroupElements& elements);

/// Bytes that the update of one element of a parameter reads and writes: its gradient, weight and states, the latter
/// two both ways, and the weight in 16 bits. That one is made from the master copy by a kernel of its own, which reads
/// it once more (Megatron-LM's _copy_main_params_to_model_params, fully_shard's cast of shards), but on TPUs, where XLA
/// fuses it with the update.
double bytes_per_update(const Settings& settings, Library library);

}  // namespace turnpoint
