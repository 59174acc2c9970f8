// SPDX-License-Identifier: Apache-2.0
// From a call of a job to something that can be launched again and again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu_probe/cuda/gpu.h"

namespace turnpoint::probe::cuda {

/// One buffer of a step, in the order in which the step made them.
struct Operand {
  enum class Type { fp32, bf16, index, word };
  Pointer pointer = 0;
  std::int64_t count = 0;
  Type type = Type::fp32;
};

struct Step {
  std::function<int(Stream)> run;  ///< 0: it was queued
  std::int64_t count = 1;
  int launches = 1;            ///< kernels that one run queues
  std::string implementation;  ///< "cublasLt 13.1.0"
  std::vector<Operand> operands;
};

/// Allocates and fills what the call needs, and plans it.
Expected<Step> make_step(Gpu& gpu, DeviceMemory& memory, const ProbeCall& call, ProbePrecision precision);

}  // namespace turnpoint::probe::cuda
