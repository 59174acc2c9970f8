// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/block.h"

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
  peak = std::max(peak, total());
}

std::int64_t Ledger::total() const {
  std::int64_t sum = 0;
  for (const auto bytes : now) sum += bytes;
  return sum;
}

Block::Block(Ledger& counted_by, Region where, int bytes_per_element, Held as)
    : region(std::move(where)),
      data(static_cast<std::size_t>(region.elements())),
      element_bytes(bytes_per_element),
      ledger_(counted_by),
      held_(as) {
  ledger_.add(held_, region.elements() * element_bytes);
}

Block::~Block() { ledger_.add(held_, -region.elements() * element_bytes); }

void Block::count_as(Held as) {
  if (held_ == as || held_ == Held::kept) return;
  ledger_.add(held_, -region.elements() * element_bytes);
  held_ = as;
  ledger_.add(held_, region.elements() * element_bytes);
}

Value make_block(Ledger& ledger, Region region, int element_bytes) {
  return std::make_shared<Block>(ledger, std::move(region), element_bytes);
}

void copy_overlap(const Region& from, const double* source, const Region& to, double* target, bool add) {
  const Region both = intersection(from, to);
  if (both.elements() == 0) return;
  const std::size_t rank = both.extent.size();
  const std::int64_t run = rank == 0 ? 1 : both.extent[rank - 1];
  const std::int64_t rows = both.elements() / run;
  Shape at(rank, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t read = 0, write = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      read = read * from.extent[d] + both.offset[d] - from.offset[d] + at[d];
      write = write * to.extent[d] + both.offset[d] - to.offset[d] + at[d];
    }
    for (std::int64_t i = 0; i < run; ++i) {
      if (add)
        target[write + i] += source[read + i];
      else
        target[write + i] = source[read + i];
    }
    for (std::size_t d = rank - (rank > 0); d-- > 0;) {
      if (++at[d] < both.extent[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace turnpoint::step
