// SPDX-License-Identifier: Apache-2.0
// Where the numbers of a step live, and all that the executor does with them by itself: in the memory of this process,
// or of a CUDA device (cuda/place.cpp), where an address cannot be followed from here. Work on a device is queued in
// the order of the calls; what fails there shows at the next settle().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/expected.h"
#include "gpu_probe/job/output.h"
#include "gpu_probe/step/values/buffers.h"
#include "gpu_probe/step/values/options.h"
#include "gpu_probe/step/values/real.h"
#include "gpu_probe/step/values/region.h"

namespace turnpoint::step::TURNPOINT_REAL {

#ifdef TURNPOINT_STEP_CUDA

/// Numbers there are floats, or bf16 with `element_bytes` 2: which, says the memory that was taken for them.
struct Place {
  std::uint64_t address = 0;
  int element_bytes = sizeof(Real);
  Place operator+(std::int64_t elements) const {
    return {address + static_cast<std::uint64_t>(elements) * static_cast<std::uint64_t>(element_bytes), element_bytes};
  }
  friend bool operator==(const Place&, const Place&) = default;
};
using ConstPlace = Place;
inline Place place_of(void* memory, int element_bytes = sizeof(Real)) {
  return {reinterpret_cast<std::uint64_t>(memory), element_bytes};
}
inline int element_bytes_of(ConstPlace place) { return place.element_bytes; }
/// Of what the plan's tensors are made of: those of the precision that is carried out (cuda/run.h).
int kept_bytes();

/// Consecutive numbers, as std::span says it of the host's.
class Numbers {
 public:
  Numbers() = default;
  Numbers(Place first, std::size_t count) : first_(first), count_(count) {}
  Place data() const { return first_; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Numbers subspan(std::size_t from, std::size_t count) const {
    return {first_ + static_cast<std::int64_t>(from), count};
  }

 private:
  Place first_;
  std::size_t count_ = 0;
};
using ConstNumbers = Numbers;

/// A moment of the device's own clock, when it comes to it.
struct Moment {
  void* event = nullptr;
};
Moment moment();
/// Tells the seconds between two moments; on a device in settle(), so that nothing waits meanwhile.
void between(const Moment& from, const Moment& to, std::function<void(double)> take);

#else

using Place = Real*;
using ConstPlace = const Real*;
using Numbers = std::span<Real>;
using ConstNumbers = std::span<const Real>;
inline Place place_of(void* memory, int = 0) { return static_cast<Real*>(memory); }
inline int element_bytes_of(ConstPlace) { return sizeof(Real); }
inline int kept_bytes() { return sizeof(Real); }

struct Moment {
  double seconds = 0;
};
inline Moment moment() { return {probe::host_clock()}; }
template <class Take>
void between(const Moment& from, const Moment& to, const Take& take) {
  take(to.seconds - from.seconds);
}

#endif

/// Memory of this rank: what a plan speaks of, scratch inside kernels and exchanges, and what is counted nowhere (what
/// the host keeps, numbers that stand for data to be loaded).
Buffers& counted_memory();
Buffers& scratch_memory();
Buffers& outside_memory();

/// Copying, adding and loading turn numbers into what the target keeps of them.
void copy(ConstPlace from, Place to, std::size_t count);
void add(ConstPlace from, Place to, std::size_t count);  ///< to += from
void fill(Place to, Real value, std::size_t count);
void upload(const Real* from, Place to, std::size_t count);
/// What is queued before is waited for.
void download(ConstPlace from, Real* to, std::size_t count);
/// Copies what both regions have in common; `add`: adds it.
void copy_overlap(const Region& from, ConstPlace source, const Region& to, Place target, bool add = false);
void transpose(ConstPlace from, std::int64_t rows, std::int64_t columns, Place to);
/// Tells the sum of the products in double, by the next settle() at the latest.
void weighted_sum(ConstPlace a, ConstPlace b, std::size_t count, std::function<void(double)> take);
/// Weights `w` and state `m`, `v` after a step by the gradient `g`. Where weights are kept in less than a Real,
/// `master` holds them whole.
void apply(UpdateRule rule, Real rate, ConstPlace g, Place w, Place master, Place m, Place v, std::size_t count);

/// Before a step that is timed: a device does not begin until what follows is queued, about, so that its clock does not
/// count how fast the host queues.
void hold_back();
/// Begins a step of this rank: what an earlier one that failed was still to be told is forgotten.
void begin_moments();
/// All that was queued is done and told. Error: what failed since the last time.
Expected<void> settle();

/// Numbers on their way from one rank of this process to another, whose memory is its own.
class Message {
 public:
  explicit Message(ConstNumbers numbers);
  std::size_t size() const { return size_; }
  ConstPlace data() const { return data_; }

 private:
  std::shared_ptr<void> owner_;
  Place data_{};
  std::size_t size_ = 0;
};

/// Numbers made here for a place, which they go to when this ends.
class Filling {
 public:
  Filling(Place to, std::size_t count);
  ~Filling();
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;
  Real& operator[](std::size_t i) { return data_[i]; }

 private:
  Place to_;
  std::vector<Real> staged_;
  Real* data_;
};

}  // namespace turnpoint::step::TURNPOINT_REAL
