// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/values/region.h"

#include <algorithm>

namespace turnpoint::step {

std::int64_t Region::elements() const {
  std::int64_t count = 1;
  for (const auto size : extent) count *= size;
  return count;
}

int coordinate(const Mesh& mesh, int rank, int axis) {
  for (int a = mesh.count() - 1; a > axis; --a) rank /= mesh.axes[static_cast<std::size_t>(a)].size;
  return rank % mesh.axes[static_cast<std::size_t>(axis)].size;
}

int position_of(const Mesh& mesh, int rank, std::uint32_t axes) {
  int position = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (axes >> a & 1u) position = position * mesh.axes[static_cast<std::size_t>(a)].size + coordinate(mesh, rank, a);
  return position;
}

std::vector<int> group_of(const Mesh& mesh, int rank, std::uint32_t axes) {
  std::vector<int> members{0};
  for (int a = 0; a < mesh.count(); ++a) {
    const int size = mesh.axes[static_cast<std::size_t>(a)].size;
    std::vector<int> next;
    for (const int member : members) {
      if (axes >> a & 1u) {
        for (int c = 0; c < size; ++c) next.push_back(member * size + c);
      } else {
        next.push_back(member * size + coordinate(mesh, rank, a));
      }
    }
    members = std::move(next);
  }
  return members;
}

Region region_of(const Mesh& mesh, int rank, const Layout& layout, const Shape& shape) {
  Region region{Shape(shape.size(), 0), shape};
  for (int a = 0; a < mesh.count(); ++a) {
    const int d = layout.axis[static_cast<std::size_t>(a)];
    if (d < 0) continue;
    auto& extent = region.extent[static_cast<std::size_t>(d)];
    extent /= mesh.axes[static_cast<std::size_t>(a)].size;
    region.offset[static_cast<std::size_t>(d)] += coordinate(mesh, rank, a) * extent;
  }
  return region;
}

Region intersection(const Region& a, const Region& b) {
  Region both = a;
  for (std::size_t d = 0; d < a.extent.size(); ++d) {
    both.offset[d] = std::max(a.offset[d], b.offset[d]);
    both.extent[d] =
        std::max<std::int64_t>(0, std::min(a.offset[d] + a.extent[d], b.offset[d] + b.extent[d]) - both.offset[d]);
  }
  return both;
}

void Ledger::add(Held kind, std::int64_t bytes) {
  const auto k = static_cast<std::size_t>(kind);
  now[k] += bytes;
  most[k] = std::max(most[k], now[k]);
  const std::int64_t all = total();
  peak = std::max(peak, all);
  lasting_peak = std::max(lasting_peak, all - now[static_cast<std::size_t>(Held::momentary)]);
}

std::int64_t Ledger::total() const {
  std::int64_t sum = 0;
  for (const auto bytes : now) sum += bytes;
  return sum;
}

}  // namespace turnpoint::step
