// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/kernels/multiply.h"

#include <algorithm>
#include <utility>

#include "gpu_probe/cpu/double_products.h"
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

namespace {

constexpr double kWorthPacking = 4096;  ///< multiplications; below, loops are as fast

/// Loops that are one walk for all three are one loop: samples and their tokens are the rows of one matrix. A weight of
/// many megabytes is then read once and not for each sample.
Multiplied joined(Multiplied loops) {
  const auto goes_on = [&](std::size_t outer, std::size_t inner) {
    return std::all_of(loops.strides.begin(), loops.strides.end(),
                       [&](const auto& strides) { return strides[outer] == strides[inner] * loops.sizes[inner]; });
  };
  for (std::size_t outer = 0; outer < loops.sizes.size(); ++outer)
    for (std::size_t inner = 0; inner < loops.sizes.size(); ++inner) {
      if (outer == inner || loops.sizes[outer] == 1 || loops.sizes[inner] == 1 || !goes_on(outer, inner)) continue;
      loops.sizes[outer] *= loops.sizes[inner];
      for (auto& strides : loops.strides) strides[outer] = strides[inner];
      loops.sizes[inner] = 1;
      inner = static_cast<std::size_t>(-1);  // others may go on from there
    }
  return loops;
}

/// Three loops that are a product of matrices; rows of y are walked by m, its columns, side by side, by n.
struct Matrices {
  std::size_t m = 0, n = 0, k = 0;
  bool swapped = false;  ///< the rows are b's, the columns a's
  double multiplications = 0;
};

Matrices best_matrices(const Multiplied& loops) {
  const auto &a = loops.strides[0], &b = loops.strides[1], &y = loops.strides[2];
  Matrices best;
  const std::size_t count = loops.sizes.size();
  const auto consider = [&](std::size_t m, std::size_t n, std::size_t k, bool swapped) {
    const auto& rows = swapped ? b : a;
    const auto& columns = swapped ? a : b;
    const bool fine = rows[m] != 0 && columns[m] == 0 && y[m] != 0 && columns[n] != 0 && rows[n] == 0 && y[n] == 1 &&
                      rows[k] != 0 && columns[k] != 0 && y[k] == 0;
    const double size =
        static_cast<double>(loops.sizes[m]) * static_cast<double>(loops.sizes[n]) * static_cast<double>(loops.sizes[k]);
    if (fine && size > best.multiplications) best = {m, n, k, swapped, size};
  };
  for (std::size_t m = 0; m < count; ++m)
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t k = 0; k < count; ++k)
        for (const bool swapped : {false, true})
          if (m != n && n != k && m != k) consider(m, n, k, swapped);
  return best;
}

void multiply_matrices(const Multiplied& loops, const Matrices& found, const double* a, const double* b, double* y) {
  const auto& rows = loops.strides[found.swapped ? 1 : 0];
  const auto& columns = loops.strides[found.swapped ? 0 : 1];
  const auto& result = loops.strides[2];
  const probe::StridedProduct product{loops.sizes[found.m], loops.sizes[found.n], loops.sizes[found.k],
                                      rows[found.m],        rows[found.k],        columns[found.k],
                                      columns[found.n],     result[found.m]};
  const probe::DoubleProducts& products = probe::double_products();
  auto others = loops.sizes;
  others[found.m] = others[found.n] = others[found.k] = 1;
  for_each<3>(others, loops.strides, [&](const auto&, const auto& at) {
    const double *first = a + at[0], *second = b + at[1];
    if (found.swapped) std::swap(first, second);
    products.add(product, first, second, y + at[2]);
  });
}

}  // namespace

template <class Real>
void multiply_add_plainly(const Multiplied& loops, const Real* a, const Real* b, Real* y) {
  for_each<3>(loops.sizes, loops.strides, [&](const auto&, const auto& at) { y[at[2]] += a[at[0]] * b[at[1]]; });
}

template void multiply_add_plainly<double>(const Multiplied&, const double*, const double*, double*);
template void multiply_add_plainly<float>(const Multiplied&, const float*, const float*, float*);

void multiply_add(const Multiplied& loops, const double* a, const double* b, double* y) {
  const Multiplied whole = joined(loops);
  const Matrices found = best_matrices(whole);
  if (found.multiplications >= kWorthPacking) return multiply_matrices(whole, found, a, b, y);
  multiply_add_plainly(loops, a, b, y);
}

}  // namespace turnpoint::step
