// SPDX-License-Identifier: Apache-2.0
// Where the numbers of a step live, in what they are kept, and all that the executor does with them by itself. What
// executes a step knows no number type: it hands places to the arithmetic of its rank. Work on a device is queued in
// the order of the calls; what fails there shows at the next settle().
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/expected.h"
#include "core/model/model.h"
#include "gpu_probe/step/values/buffers.h"
#include "gpu_probe/step/values/options.h"
#include "gpu_probe/step/values/region.h"

namespace turnpoint::step {

/// Numbers in the memory of this process (double or float) or of a CUDA device (float, or bf16 with `element_bytes` 2),
/// where the address cannot be followed from here.
struct Place {
  std::uint64_t address = 0;
  int element_bytes = 0;

  Place() = default;
  Place(std::uint64_t at, int bytes) : address(at), element_bytes(bytes) {}
  Place(const void* memory, int bytes) : Place(reinterpret_cast<std::uint64_t>(memory), bytes) {}
  template <std::floating_point Real>
  Place(Real* numbers) : Place(numbers, sizeof(Real)) {}
  /// Of the host, in the type in which they are kept there.
  template <std::floating_point Real>
  Real* as() const {
    assert(address == 0 || element_bytes == sizeof(Real));
    return reinterpret_cast<Real*>(address);
  }
  template <std::floating_point Real>
  operator Real*() const {
    return as<Real>();
  }
  Place operator+(std::int64_t elements) const {
    return {address + static_cast<std::uint64_t>(elements) * static_cast<std::uint64_t>(element_bytes), element_bytes};
  }
  friend bool operator==(const Place&, const Place&) = default;
};
using ConstPlace = Place;  ///< only read

/// Consecutive numbers.
class Numbers {
 public:
  Numbers() = default;
  Numbers(Place first, std::size_t count) : first_(first), count_(count) {}
  template <std::floating_point Real>
  Numbers(const std::vector<Real>& all) : Numbers(all.data(), all.size()) {}
  Place data() const { return first_; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Numbers subspan(std::size_t from, std::size_t count) const {
    return {first_ + static_cast<std::int64_t>(from), count};
  }
  std::span<std::byte> bytes() const {  ///< of the host
    return {reinterpret_cast<std::byte*>(first_.address), count_ * static_cast<std::size_t>(first_.element_bytes)};
  }

 private:
  Place first_;
  std::size_t count_ = 0;
};
using ConstNumbers = Numbers;  ///< only read

/// By the clock of the host, or of a device when it comes to it.
struct Moment {
  double seconds = 0;
  void* event = nullptr;
};

struct Kernel;

/// In what numbers a rank computes, and where. Its members are what the functions below do.
class Arithmetic {
 public:
  Arithmetic(int whole, bool device) : whole_bytes(whole), on_device(device) {}
  Arithmetic(const Arithmetic&) = delete;
  Arithmetic& operator=(const Arithmetic&) = delete;
  virtual ~Arithmetic() = default;

  const int whole_bytes;  ///< of a number that is kept whole whatever tensors are kept in
  const bool on_device;   ///< kernels then write every element of their results
  /// In double, so that a plan that computes something else cannot hide behind rounding: by plain loops and copies.
  bool proves() const { return whole_bytes == sizeof(double); }

  virtual int kept_bytes() const { return whole_bytes; }
  /// Error: this operator cannot be executed, and why.
  virtual Expected<Kernel> kernel_of(const Model& model, OperatorId id) const = 0;
  virtual Buffers& counted_memory() const { return Buffers::of_this_rank(); }
  virtual Buffers& scratch_memory() const { return Buffers::scratch_of_this_rank(); }
  virtual Buffers& outside_memory() const { return Buffers::outside_of_this_rank(); }
  virtual std::shared_ptr<void> mail(std::size_t bytes) const = 0;  ///< memory that another rank may give back
  virtual Moment moment() const = 0;
  virtual void between(const Moment& from, const Moment& to, std::function<void(double)> take) const = 0;
  virtual void copy(ConstPlace from, Place to, std::size_t count) const = 0;
  virtual void add(ConstPlace from, Place to, std::size_t count) const = 0;
  virtual void fill(Place to, double value, std::size_t count) const = 0;
  virtual void upload(const void* from, Place to, std::size_t bytes) const = 0;
  virtual void download(ConstPlace from, void* to, std::size_t bytes) const = 0;
  virtual void copy_overlap(const Region& from, ConstPlace source, const Region& to, Place target, bool add) const = 0;
  virtual void transpose(ConstPlace from, std::int64_t rows, std::int64_t columns, Place to) const = 0;
  virtual void weighted_sum(ConstPlace a, ConstPlace b, std::size_t count, std::function<void(double)> take) const = 0;
  virtual void apply(UpdateRule rule, double rate, ConstPlace g, Place w, Place master, Place m, Place v,
                     std::size_t count) const = 0;
  virtual void hold_back() const {}
  virtual void begin_moments() const {}
  virtual Expected<void> settle() const { return {}; }
};

const Arithmetic& in_double();  ///< of the proof
const Arithmetic& in_float();   ///< to be timed on cores

/// That of this thread's rank.
const Arithmetic& arithmetic();
/// While it lives, this thread's rank computes so.
class ComputeIn {
 public:
  explicit ComputeIn(const Arithmetic& wanted);
  ~ComputeIn();
  ComputeIn(const ComputeIn&) = delete;
  ComputeIn& operator=(const ComputeIn&) = delete;

 private:
  const Arithmetic* before_;
};

/// Memory of this rank: what a plan speaks of, scratch inside kernels and exchanges, and what is counted nowhere (what
/// the host keeps, numbers that stand for data to be loaded).
inline Buffers& counted_memory() { return arithmetic().counted_memory(); }
inline Buffers& scratch_memory() { return arithmetic().scratch_memory(); }
inline Buffers& outside_memory() { return arithmetic().outside_memory(); }
/// Of what the plan's tensors are made of: on a device those of the precision that is carried out (cuda/run.h).
inline int kept_bytes() { return arithmetic().kept_bytes(); }

inline Moment moment() { return arithmetic().moment(); }
/// Tells the seconds between two moments; on a device in settle(), so that nothing waits meanwhile.
inline void between(const Moment& from, const Moment& to, std::function<void(double)> take) {
  arithmetic().between(from, to, std::move(take));
}

// Copying, adding and loading turn numbers into what the target keeps of them.

inline void copy(ConstPlace from, Place to, std::size_t count) { arithmetic().copy(from, to, count); }
/// to += from
inline void add(ConstPlace from, Place to, std::size_t count) { arithmetic().add(from, to, count); }
inline void fill(Place to, double value, std::size_t count) { arithmetic().fill(to, value, count); }
/// Bytes as they are. What is queued before download() is waited for.
inline void upload(const void* from, Place to, std::size_t bytes) { arithmetic().upload(from, to, bytes); }
inline void download(ConstPlace from, void* to, std::size_t bytes) { arithmetic().download(from, to, bytes); }
void put(std::span<const double> numbers, Place to);
std::vector<double> numbers_at(ConstPlace from, std::size_t count);  ///< once they are there
/// Copies what both regions have in common; `add`: adds it.
inline void copy_overlap(const Region& from, ConstPlace source, const Region& to, Place target, bool add = false) {
  arithmetic().copy_overlap(from, source, to, target, add);
}
inline void transpose(ConstPlace from, std::int64_t rows, std::int64_t columns, Place to) {
  arithmetic().transpose(from, rows, columns, to);
}
/// Tells the sum of the products in double, by the next settle() at the latest.
inline void weighted_sum(ConstPlace a, ConstPlace b, std::size_t count, std::function<void(double)> take) {
  arithmetic().weighted_sum(a, b, count, std::move(take));
}
/// Weights `w` and state `m`, `v` after a step by the gradient `g`. Where weights are kept in less than whole numbers,
/// `master` holds them whole.
inline void apply(UpdateRule rule, double rate, ConstPlace g, Place w, Place master, Place m, Place v,
                  std::size_t count) {
  arithmetic().apply(rule, rate, g, w, master, m, v, count);
}

/// Before a step that is timed: a device does not begin until what follows is queued, about, so that its clock does not
/// count how fast the host queues.
inline void hold_back() { arithmetic().hold_back(); }
/// Begins a step of this rank: what an earlier one that failed was still to be told is forgotten.
inline void begin_moments() { arithmetic().begin_moments(); }
/// All that was queued is done and told. Error: what failed since the last time.
inline Expected<void> settle() { return arithmetic().settle(); }

/// The nearest bf16 of a float, the even one of two that are as near.
std::uint16_t to_half(float x);

/// Numbers on their way from one rank of this process to another, whose memory is its own.
class Message {
 public:
  explicit Message(ConstNumbers numbers);
  std::size_t size() const { return size_; }
  ConstPlace data() const { return data_; }

 private:
  std::shared_ptr<void> owner_;
  Place data_;
  std::size_t size_ = 0;
};

/// Numbers made here for a place one after the other; the last of them go there when this ends.
class Filling {
 public:
  explicit Filling(Place to) : to_(to), part_(kPart) {}
  ~Filling() { flush(); }
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;
  void add(double number) {
    part_[used_++] = number;
    if (used_ == kPart) flush();
  }

 private:
  static constexpr std::size_t kPart = 8192;
  void flush();
  Place to_;
  std::vector<double> part_;
  std::size_t used_ = 0;
};

}  // namespace turnpoint::step
