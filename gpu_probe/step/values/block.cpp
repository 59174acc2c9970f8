// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/values/block.h"

#include <algorithm>

namespace turnpoint::step {

Array::Array(Buffers& from, std::size_t size, int element_bytes, int bytes_each) : size_(size) {
  const std::size_t bytes = size * static_cast<std::size_t>(std::max(element_bytes, bytes_each));
  owner_ = std::shared_ptr<void>(from.take(bytes), [&from, bytes](void* data) { from.give(data, bytes); });
  data_ = Place(owner_.get(), element_bytes);
}

Array::Array(std::size_t size, int bytes_each) : Array(counted_memory(), size, kept_bytes(), bytes_each) {}
Array Array::whole(std::size_t size) { return {counted_memory(), size, arithmetic().whole_bytes, 0}; }
Array Array::outside(std::size_t size) { return {outside_memory(), size, arithmetic().whole_bytes, 0}; }
Array Array::scratch(std::size_t size) { return {scratch_memory(), size, kept_bytes(), 0}; }
Array Array::whole_scratch(std::size_t size) { return {scratch_memory(), size, arithmetic().whole_bytes, 0}; }
Array Array::scratch_like(ConstPlace other, std::size_t size) {
  return {scratch_memory(), size, other.element_bytes, 0};
}

Array Array::part(std::size_t first, std::size_t size) const {
  Array view;
  view.owner_ = owner_;
  view.data_ = data_ + static_cast<std::int64_t>(first);
  view.size_ = size;
  return view;
}

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

}  // namespace turnpoint::step
