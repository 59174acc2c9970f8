// SPDX-License-Identifier: Apache-2.0
// What one rank holds of a tensor: a rectangular block of it, counted in a ledger as its elements would take them in
// training (4 for fp32, 8 for an i64, ...).
#pragma once

#include <memory>

#include "gpu_probe/step/values/place.h"

namespace turnpoint::step {

/// Numbers in a buffer of this rank's, or part of such an array that shares it. Not initialised.
class Array {
 public:
  Array() = default;
  /// `bytes_each`: room for elements that are larger in training than here.
  explicit Array(std::size_t size, int bytes_each = 0);
  /// Whole numbers whatever tensors are kept in: optimizer state.
  static Array whole(std::size_t size);
  /// Memory that counts nowhere: what the host keeps, numbers that stand for data to be loaded. Whole numbers.
  static Array outside(std::size_t size);
  /// For the moment of one kernel or exchange, elements like those of tensors. Not initialised.
  static Array scratch(std::size_t size);
  static Array whole_scratch(std::size_t size);  ///< sums and statistics
  static Array scratch_like(ConstPlace other, std::size_t size);
  Array part(std::size_t first, std::size_t size) const;
  void clear() { fill(data_, 0, size_); }

  Place data() { return data_; }
  ConstPlace data() const { return data_; }
  std::size_t size() const { return size_; }
  Numbers numbers() { return {data_, size_}; }
  ConstNumbers numbers() const { return {data_, size_}; }
  /// Of the host, in the type in which they are kept there.
  template <class Real>
  Real* as() const {
    return data_.as<Real>();
  }

 private:
  Array(Buffers& from, std::size_t size, int element_bytes, int bytes_each);
  std::shared_ptr<void> owner_;
  Place data_;
  std::size_t size_ = 0;
};

/// A region's elements, row-major, not initialised. Counted from when it is made until the last holder lets go.
struct Block {
  Block(Ledger& counted_by, Region where, int bytes_per_element, Held as = Held::momentary);
  /// Of values that are there already; not `counted`: they are counted where they come from.
  Block(Ledger& counted_by, Region where, int bytes_per_element, Array values, bool counted);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  template <class Real>
  Real* as() const {  ///< the numbers of a host
    return data.as<Real>();
  }
  /// From now on counted as this; once kept, a block stays so.
  void count_as(Held as);

  Region region;
  Array data;
  int element_bytes;

 private:
  Ledger& ledger_;
  Held held_;
  std::int64_t counted_;
};
inline std::vector<double> numbers_of(const Array& array) { return numbers_at(array.data(), array.size()); }
using Value = std::shared_ptr<Block>;
Value make_block(Ledger& ledger, Region region, int element_bytes);

}  // namespace turnpoint::step
