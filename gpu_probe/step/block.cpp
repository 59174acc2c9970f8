// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/block.h"

#include <algorithm>
#include <vector>

namespace turnpoint::step::TURNPOINT_REAL {

Array::Array(std::size_t size, int bytes_each) : size_(size) {
  take(Buffers::of_this_rank(), size * std::max<std::size_t>(sizeof(Real), static_cast<std::size_t>(bytes_each)));
}

void Array::take(Buffers& from, std::size_t bytes) {
  owner_ = std::shared_ptr<void>(from.take(bytes), [&from, bytes](void* data) { from.give(data, bytes); });
  data_ = static_cast<Real*>(owner_.get());
}

Array Array::scratch(std::size_t size) {
  Array array;
  array.size_ = size;
  array.take(Buffers::scratch_of_this_rank(), size * sizeof(Real));
  return array;
}

Array Array::outside(std::size_t size) {
  auto numbers = std::make_shared<std::vector<Real>>(size);
  Array array;
  array.data_ = numbers->data();
  array.size_ = size;
  array.owner_ = std::move(numbers);
  return array;
}

Array Array::part(std::size_t first, std::size_t size) const {
  Array view;
  view.owner_ = owner_;
  view.data_ = data_ + first;
  view.size_ = size;
  return view;
}

void Array::clear() { std::fill(begin(), end(), Real(0)); }

Block::Block(Ledger& counted_by, Region where, int bytes_per_element, Held as)
    : region(std::move(where)),
      data(static_cast<std::size_t>(region.elements()), bytes_per_element),
      element_bytes(bytes_per_element),
      ledger_(counted_by),
      held_(as),
      counted_(region.elements() * bytes_per_element) {
  ledger_.add(held_, counted_);
}

Block::Block(Ledger& counted_by, Region where, int bytes_per_element, Array values, bool counted)
    : region(std::move(where)),
      data(std::move(values)),
      element_bytes(bytes_per_element),
      ledger_(counted_by),
      held_(Held::momentary),
      counted_(counted ? region.elements() * bytes_per_element : 0) {
  ledger_.add(held_, counted_);
}

Block::~Block() { ledger_.add(held_, -counted_); }

void Block::count_as(Held as) {
  if (held_ == as || held_ == Held::kept) return;
  ledger_.add(held_, -counted_);
  held_ = as;
  ledger_.add(held_, counted_);
}

Value make_block(Ledger& ledger, Region region, int element_bytes) {
  return std::make_shared<Block>(ledger, std::move(region), element_bytes);
}

void copy_overlap(const Region& from, const Real* source, const Region& to, Real* target, bool add) {
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
    if (add)
      for (std::int64_t i = 0; i < run; ++i) target[write + i] += source[read + i];
    else
      std::copy(source + read, source + read + run, target + write);
    for (std::size_t d = rank - (rank > 0); d-- > 0;) {
      if (++at[d] < both.extent[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace turnpoint::step::TURNPOINT_REAL
