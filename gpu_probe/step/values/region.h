// SPDX-License-Identifier: Apache-2.0
// Which part of a tensor a rank holds, and the count of the bytes that it holds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace turnpoint::step {

using Shape = std::vector<std::int64_t>;

/// Part of a tensor: per dimension where it starts in the whole tensor and how long it is.
struct Region {
  Shape offset, extent;
  std::int64_t elements() const;
  friend bool operator==(const Region&, const Region&) = default;
};

/// Position of a rank along one mesh axis; axis 0 is the outermost, as ranks are numbered.
int coordinate(const Mesh& mesh, int rank, int axis);
/// Ranks that differ from this one on `axes` only, ascending: the innermost axis counts fastest.
std::vector<int> group_of(const Mesh& mesh, int rank, std::uint32_t axes);
/// The axes' coordinates as one number, outermost first: the rank's position within group_of().
int position_of(const Mesh& mesh, int rank, std::uint32_t axes);
/// The block of a tensor that a rank holds in this layout; on replicated and partial axes all hold alike.
Region region_of(const Mesh& mesh, int rank, const Layout& layout, const Shape& shape);
/// Where both regions overlap; an extent of 0 where they do not.
Region intersection(const Region& a, const Region& b);

/// Calls visit(local index, row-major index in the whole tensor) for every element of a region.
template <class Visit>
void for_each_element(const Region& region, const Shape& shape, const Visit& visit) {
  Shape at(region.extent.size(), 0);
  const std::int64_t elements = region.elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < at.size(); ++d) index = index * shape[d] + region.offset[d] + at[d];
    visit(static_cast<std::size_t>(i), index);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < region.extent[d]) break;
      at[d] = 0;
    }
  }
}

/// Calls visit(local index, row-major index in the whole tensor, count) for runs that lie side by side in both, of
/// `count` elements of a region from `first` on.
template <class Visit>
void for_each_run(const Region& region, const Shape& shape, std::int64_t first, std::int64_t count,
                  const Visit& visit) {
  std::size_t outer = region.extent.size();
  std::int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= region.extent[outer];
    if (region.extent[outer] != shape[outer]) break;
  }
  for (std::int64_t at = first, end = first + count; at < end;) {
    const std::int64_t length = std::min(run - at % run, end - at);
    std::int64_t rest = at, index = 0, stride = 1;
    for (std::size_t d = region.extent.size(); d-- > 0;) {
      index += (region.offset[d] + rest % region.extent[d]) * stride;
      stride *= shape[d];
      rest /= region.extent[d];
    }
    visit(at, index, length);
    at += length;
  }
}

/// What memory is counted as.
enum class Held : std::uint8_t { parameters, gradients, optimizer, kept, momentary };
inline constexpr int kHeldKinds = 5;

/// Bytes held by one rank now and at most, as the plan's scenario counts an element. Used by one thread.
struct Ledger {
  std::array<std::int64_t, kHeldKinds> now{}, most{};
  std::int64_t peak = 0;          ///< of all kinds together
  std::int64_t lasting_peak = 0;  ///< of all but the momentary ones together
  void add(Held kind, std::int64_t bytes);
  std::int64_t operator[](Held kind) const { return now[static_cast<std::size_t>(kind)]; }
  std::int64_t total() const;
};

}  // namespace turnpoint::step
