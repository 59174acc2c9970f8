// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/double_products.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "gpu_probe/cpu/blas.h"

namespace turnpoint::probe {

namespace {

constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;

struct Stored {
  bool transposed = false;
  std::int64_t lead = 0;
};

/// How a matrix with these strides lies in memory; nullopt: neither by rows nor by columns.
std::optional<Stored> stored(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  const auto most = [](std::int64_t lead) { return lead <= std::numeric_limits<int>::max(); };
  if ((column == 1 || columns == 1) && (rows == 1 || row >= columns)) {
    const std::int64_t lead = rows == 1 ? columns : row;
    if (most(lead)) return Stored{false, lead};
  }
  if ((row == 1 || rows == 1) && (columns == 1 || column >= rows)) {
    const std::int64_t lead = columns == 1 ? rows : column;
    if (most(lead)) return Stored{true, lead};
  }
  return std::nullopt;
}

struct CheckedShape {
  int m, n, k;
};
// Below, at and beyond the sizes at which libraries change their ways.
constexpr CheckedShape kShapes[] = {{1, 1, 1},     {5, 3, 7},       {1, 90, 64},   {64, 64, 64},
                                    {33, 65, 129}, {200, 260, 130}, {70, 520, 260}};
constexpr int kGap = 3;  ///< numbers between rows

/// Whole numbers up to 2^20: sums of some hundred products stay below 2^53.
std::vector<double> whole_numbers(int rows, int columns, std::uint32_t& state) {
  std::vector<double> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns + kGap));
  for (double& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<double>(state >> 11) - 0x1p20;
  }
  return values;
}

bool right(CblasDgemm library, const CheckedShape& s, bool ta, bool tb) {
  std::uint32_t state = 1;
  const int a_rows = ta ? s.k : s.m, a_columns = ta ? s.m : s.k, b_rows = tb ? s.n : s.k, b_columns = tb ? s.k : s.n;
  const auto a = whole_numbers(a_rows, a_columns, state), b = whole_numbers(b_rows, b_columns, state);
  auto expected = whole_numbers(s.m, s.n, state), got = expected;
  const int lead_a = a_columns + kGap, lead_b = b_columns + kGap, lead_c = s.n + kGap;
  const auto at = [](int row, int lead, int column) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(lead) + static_cast<std::size_t>(column);
  };
  for (int i = 0; i < s.m; ++i)
    for (int l = 0; l < s.k; ++l) {
      const double left = a[ta ? at(l, lead_a, i) : at(i, lead_a, l)];
      double* to = expected.data() + at(i, lead_c, 0);
      for (int j = 0; j < s.n; ++j) to[j] += left * b[tb ? at(j, lead_b, l) : at(l, lead_b, j)];
    }
  library(kRowMajor, ta ? kTransposed : kPlain, tb ? kTransposed : kPlain, s.m, s.n, s.k, 1, a.data(), lead_a, b.data(),
          lead_b, 1, got.data(), lead_c);
  return got == expected;
}

DoubleProducts find_products() {
  constexpr const char* kName = "libopenblas.so.0";
  DoubleProducts own;
  if (chosen_kernels() == CpuKernels::own) return own;
  // Threads of the library's own would fight with the ranks.
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  void* library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  own.why = std::string(kName) + ": not found";
  if (!library) return own;
  const auto product = reinterpret_cast<CblasDgemm>(dlsym(library, "cblas_dgemm"));
  const auto parallel = reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_parallel"));
  const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
  own.refused = true;
  own.why = std::string(kName) + ": has no cblas_dgemm";
  if (!product) return own;
  // Several ranks multiply at once.
  own.why = std::string(kName) + ": a build that threads cannot share";
  if (!parallel || parallel() == 0 || !set_threads) return own;
  set_threads(1);
  return checked(product, kName);
}

}  // namespace

void DoubleProducts::add(const StridedProduct& p, const double* a, const double* b, double* c) const {
  const auto left = stored(p.m, p.k, p.a_row, p.a_column), right = stored(p.k, p.n, p.b_row, p.b_column);
  const bool sizes = std::max({p.m, p.n, p.k, p.c_row}) <= std::numeric_limits<int>::max();
  if (!library || !left || !right || !sizes || (p.m > 1 && p.c_row < p.n)) return add_product(p, a, b, c);
  const auto i = [](std::int64_t value) { return static_cast<int>(value); };
  library(kRowMajor, left->transposed ? kTransposed : kPlain, right->transposed ? kTransposed : kPlain, i(p.m), i(p.n),
          i(p.k), 1, a, i(left->lead), b, i(right->lead), 1, c, i(std::max(p.c_row, p.n)));
}

DoubleProducts checked(CblasDgemm library, const std::string& name) {
  for (const auto& shape : kShapes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        if (!right(library, shape, ta, tb))
          return {nullptr,
                  name + ": multiplies wrongly here (" + std::to_string(shape.m) + " x " + std::to_string(shape.n) +
                      " x " + std::to_string(shape.k) + "); another OPENBLAS_CORETYPE or version may not",
                  true};
  return {library};
}

const DoubleProducts& double_products() {
  static const DoubleProducts chosen = find_products();
  return chosen;
}

}  // namespace turnpoint::probe
