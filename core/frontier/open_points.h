// SPDX-License-Identifier: Apache-2.0
// The innermost loop of exact and coarse lists: which of up to 64 sums of points may be of use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace turnpoint::frontier::detail {

/// Limits of time by bucket of memory; a bucket is 2^shift bytes wide.
struct OpenLimits {
  const double* limits = nullptr;
  std::size_t buckets = 0;
  int shift = 0;
};

/// Bit i is set if memory[i] + m0 lies in a bucket and time[i] + t0 is below its limit. `count` <= 64.
using OpenPoints = std::uint64_t (*)(const std::int64_t* memory, const double* time, std::size_t count, std::int64_t m0,
                                     double t0, const OpenLimits& open);

std::uint64_t open_points_scalar(const std::int64_t* memory, const double* time, std::size_t count, std::int64_t m0,
                                 double t0, const OpenLimits& open);
/// All that this processor runs, the fastest first and the scalar one last. They give the same bits.
std::vector<OpenPoints> supported_open_points();

}  // namespace turnpoint::frontier::detail
