// SPDX-License-Identifier: Apache-2.0
// Products of tensors as products of matrices: loops sorted into the indices of a batch, of rows, of columns and of
// what is summed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace turnpoint::step {

using Strides = std::vector<std::int64_t>;

/// Loops that are one index, in one order for all operands.
struct Index {
  std::vector<std::size_t> loops;
  std::int64_t size = 1;
};

/// One operand's stride along an index; nullopt: it is not one.
inline std::optional<std::int64_t> stride_of(const Index& index, const Strides& sizes, const Strides& strides) {
  if (index.loops.empty()) return 0;
  for (std::size_t i = 0; i + 1 < index.loops.size(); ++i)
    if (strides[index.loops[i]] != strides[index.loops[i + 1]] * sizes[index.loops[i + 1]]) return std::nullopt;
  return strides[index.loops.back()];
}

/// A matrix in memory.
struct Matrix {
  bool transposed = false;
  std::int64_t leading = 0;
};

inline std::optional<Matrix> as_matrix(const Index& rows, const Index& columns, const Strides& sizes,
                                       const Strides& strides) {
  const auto r = stride_of(rows, sizes, strides), c = stride_of(columns, sizes, strides);
  if (!r || !c) return std::nullopt;
  if ((columns.size == 1 || *c == 1) && (rows.size == 1 || *r >= columns.size))
    return Matrix{false, rows.size == 1 ? columns.size : *r};
  if ((rows.size == 1 || *r == 1) && (columns.size == 1 || *c >= rows.size))
    return Matrix{true, columns.size == 1 ? rows.size : *c};
  return std::nullopt;
}

/// Offsets of one operand's elements along an index.
inline Strides offsets_of(const Index& index, const Strides& sizes, const Strides& strides) {
  Strides offsets{0};
  for (const auto l : index.loops) {
    Strides next;
    next.reserve(offsets.size() * static_cast<std::size_t>(sizes[l]));
    for (const auto o : offsets)
      for (std::int64_t i = 0; i < sizes[l]; ++i) next.push_back(o + i * strides[l]);
    offsets = std::move(next);
  }
  return offsets;
}

/// Loops by what they are to Y = A x B: of all three, of A and Y, of B and Y, of A and B; nullopt: of one alone.
struct Indices {
  Index batch, m, n, k;
};
inline std::optional<Indices> indices_of(const Strides& sizes, const Strides& a, const Strides& b, const Strides& y) {
  Indices all;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    if (sizes[l] == 1) continue;
    const bool in_a = a[l] != 0, in_b = b[l] != 0, in_y = y[l] != 0;
    if (in_a + in_b + in_y < 2) return std::nullopt;
    Index& index = in_a && in_b && in_y ? all.batch : in_a && in_y ? all.m : in_b && in_y ? all.n : all.k;
    index.loops.push_back(l);
    index.size *= sizes[l];
  }
  const auto order = [](Index& index, const Strides& strides) {
    std::stable_sort(index.loops.begin(), index.loops.end(),
                     [&](std::size_t i, std::size_t j) { return strides[i] > strides[j]; });
  };
  order(all.batch, y), order(all.m, y), order(all.n, y), order(all.k, a);
  return all;
}

/// Sizes and strides of an index's loops, and those of the packed matrix they go to.
struct Packing {
  Strides sizes, from, to;
  void add(const Index& index, const Strides& all_sizes, const Strides& strides, std::int64_t inner) {
    Strides packed(index.loops.size());
    for (std::size_t i = index.loops.size(); i-- > 0;) {
      packed[i] = inner;
      inner *= all_sizes[index.loops[i]];
    }
    for (std::size_t i = 0; i < index.loops.size(); ++i) {
      sizes.push_back(all_sizes[index.loops[i]]);
      from.push_back(strides[index.loops[i]]);
      to.push_back(packed[i]);
    }
  }
};

}  // namespace turnpoint::step
