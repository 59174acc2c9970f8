// SPDX-License-Identifier: Apache-2.0
// A matrix product from a library of the machine, if it has one: oneDNN or OpenBLAS, looked for at run time.
#pragma once

#include <string>
#include <vector>

#include "gpu_probe/cpu/gemm.h"

namespace turnpoint::probe {

struct Blas {
  GemmFunction function = gemm;
  std::string name = "built-in loops";
  std::vector<std::string> missing;  ///< libraries that were looked for, and why not
};

/// The first that is there; each runs on one thread. Loaded once per process.
const Blas& blas();

}  // namespace turnpoint::probe
