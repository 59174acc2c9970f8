// SPDX-License-Identifier: Apache-2.0
// Products in double, of which proofs are made: OpenBLAS's where it is found at run time and multiplies rightly, else
// our own blocks.
#pragma once

#include <string>

#include "gpu_probe/cpu/gemm.h"

namespace turnpoint::probe {

using CblasDgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                            const double* a, int lead_a, const double* b, int lead_b, double beta, double* c,
                            int lead_c);

struct DoubleProducts {
  CblasDgemm library = nullptr;  ///< null: own blocks
  std::string why = {};          ///< there is no library
  bool refused = false;          ///< it is there, and cannot be used

  /// C += A B. What does not lie in memory as the library wants it goes by own blocks.
  void add(const StridedProduct& product, const double* a, const double* b, double* c) const;
};

/// Loaded once per process, each product on one thread: a rank is one core. Own blocks where the kernels of this
/// process are to be our own (choose_kernels).
const DoubleProducts& double_products();

/// The library's function if it gives the sums of plain loops to the last bit: of whole numbers so small that no
/// rounding touches them, in shapes that end inside of a library's blocks, as they lie and transposed, with room
/// between rows, onto what is there. Builds of OpenBLAS that multiply wrongly on newer processors are not unheard of,
/// and a wrong product must not become a wrong proof.
DoubleProducts checked(CblasDgemm library, const std::string& name);

}  // namespace turnpoint::probe
