// SPDX-License-Identifier: Apache-2.0
// A matrix product from a library of the machine, if it has one: oneDNN or OpenBLAS, looked for at run time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/probe_job.h"
#include "gpu_probe/cpu/gemm.h"

namespace turnpoint::probe {

struct Blas {
  GemmFunction function = gemm;
  std::string name = "built-in loops", version;
  bool onednn = false;               ///< convolutions are oneDNN's, too
  std::vector<std::string> missing;  ///< libraries that were looked for, and why not
};

/// Which kernels this process uses from then on; before the first call of blas(). Without it: automatic. Device error:
/// oneDNN is wanted and not there.
Expected<void> choose_kernels(CpuKernels wanted);
CpuKernels chosen_kernels();

/// automatic: oneDNN, else OpenBLAS, else our own loops, whichever is there first; each on one thread. Loaded once per
/// process.
const Blas& blas();

}  // namespace turnpoint::probe
