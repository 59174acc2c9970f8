// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace turnpoint::probe::cuda {

/// CUDA C++ text of the probe's own kernels; each exists as NAME_f32 and NAME_bf16.
std::string kernel_source();

}  // namespace turnpoint::probe::cuda
