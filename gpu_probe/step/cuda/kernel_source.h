// SPDX-License-Identifier: Apache-2.0
// The kernels of a step on a CUDA device, as text for the run-time compiler. Each takes one of the structures of
// arguments.h; none needs more of the language than barriers, shared memory, sums over a warp and atomic ones.
#pragma once

#include <string>

#include "core/hardware/probe_job.h"

namespace turnpoint::step::in_cuda {

/// bf16: of what they read and write that is an element of the plan's tensors, as `real`.
std::string step_kernels(ProbePrecision precision);
std::string elementwise_kernels();
std::string row_kernels();      ///< normalisation and softmax
std::string special_kernels();  ///< those of them that serve one kind of operator each

/// Threads of a block in kernels that take one element, or one set, at a time.
inline constexpr int kBlock = 256;
/// Elements that a thread reads at once where arrays lie so that it can.
inline constexpr int kPack = 4;
/// Packs of a row that a thread keeps in registers.
inline constexpr int kHeld = 4;
/// Sums down columns: threads of a block along and across them.
inline constexpr int kColumns = 32, kColumnRows = 8;

}  // namespace turnpoint::step::in_cuda
