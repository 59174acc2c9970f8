// SPDX-License-Identifier: Apache-2.0
// What one rank holds of a tensor: a rectangular block of it, and the count of the bytes of all blocks that it holds.
//
// Values are doubles whatever the training's precision, so that a plan that computes something else cannot hide behind
// rounding; bytes are counted as the elements would take them in training (4 for fp32, 8 for an i64, ...).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
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

/// What memory is counted as.
enum class Held : std::uint8_t { parameters, gradients, optimizer, kept, momentary };
inline constexpr int kHeldKinds = 5;

/// Bytes held by one rank now and at most. Used by one thread.
struct Ledger {
  std::array<std::int64_t, kHeldKinds> now{}, most{};
  std::int64_t peak = 0;  ///< of all kinds together
  void add(Held kind, std::int64_t bytes);
  std::int64_t operator[](Held kind) const { return now[static_cast<std::size_t>(kind)]; }
  std::int64_t total() const;
};

/// A region's elements, row-major. Counted from when it is made until the last holder lets go.
struct Block {
  Block(Ledger& counted_by, Region where, int bytes_per_element, Held as = Held::momentary);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  /// From now on counted as this; once kept, a block stays so.
  void count_as(Held as);

  Region region;
  std::vector<double> data;
  int element_bytes;

 private:
  Ledger& ledger_;
  Held held_;
};
using Value = std::shared_ptr<Block>;
Value make_block(Ledger& ledger, Region region, int element_bytes);

/// Copies what both regions have in common; `add`: adds it.
void copy_overlap(const Region& from, const double* source, const Region& to, double* target, bool add = false);

}  // namespace turnpoint::step
