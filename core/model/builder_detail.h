// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the parts of ModelBuilder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/model/model.h"

namespace turnpoint::builder_detail {

using Shape = std::vector<std::int64_t>;
using Dims = std::vector<DimName>;
using Walks = std::vector<std::vector<std::uint8_t>>;

/// Largest tensor and largest number of loop dimensions we accept.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 60;
inline constexpr std::size_t kMaxDims = 64;

inline bool is_spatial(DimName name) {
  return name == DimName::depth || name == DimName::height || name == DimName::width || name == DimName::window;
}

/// The loop dimension of a tensor dimension that an operator only passes through: spatial ones are window dimensions.
inline LoopDimension parallel_dim(DimName name, std::int64_t size) {
  return {name, is_spatial(name) ? DimRole::window : DimRole::parallel, size, name != DimName::key_sequence};
}

inline double product(const Shape& shape) {
  double result = 1;
  for (const auto size : shape) result *= static_cast<double>(size);
  return result;
}

inline bool has_name(const std::vector<LoopDimension>& dims, DimName name) {
  return std::any_of(dims.begin(), dims.end(), [&](const auto& d) { return d.name == name; });
}

/// Adds a loop dimension and returns its index.
inline std::uint8_t add(std::vector<LoopDimension>& dims, LoopDimension dim) {
  dims.push_back(dim);
  return static_cast<std::uint8_t>(dims.size() - 1);
}

/// One loop dimension per tensor dimension larger than 1, each walked by its own; appended to `dims`.
inline Walks identity_walks(std::vector<LoopDimension>& dims, const Shape& shape, const Dims& names) {
  Walks walks(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1) walks[i] = {add(dims, parallel_dim(names[i], shape[i]))};
  }
  return walks;
}

/// The sizes that two row-major shapes have in common, outermost first; per tensor dimension the factors it walks.
struct CommonFactors {
  Shape sizes;
  Walks from, to;
};
CommonFactors common_factors(const Shape& from, const Shape& to);

}  // namespace turnpoint::builder_detail
