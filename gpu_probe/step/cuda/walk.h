// SPDX-License-Identifier: Apache-2.0
// Loops as kernels take them, and what several kinds of operator are made of: moving, summing, multiplying.
#pragma once

#include <array>
#include <span>

#include "gpu_probe/step/cuda/arguments.h"
#include "gpu_probe/step/cuda/device.h"
#include "gpu_probe/step/kernels/fast/matrix.h"
#include "gpu_probe/step/kernels/fast/nest.h"
#include "gpu_probe/step/values/block.h"

namespace turnpoint::step::in_cuda {

inline constexpr std::size_t kMostLoops = 6;

/// Neighbouring loops that are one walk for all arrays are joined; the innermost is that of the first array's.
/// More loops than kernels take are a failure of the device.
template <std::size_t kArrays>
Walk<static_cast<int>(kArrays)> walk_of(const Strides& sizes, const std::array<Strides, kArrays>& strides) {
  Nest<kArrays> nest(sizes, strides);
  nest.simplify();
  Walk<static_cast<int>(kArrays)> walk{};
  walk.count = 1;
  walk.loops = static_cast<i64>(nest.loops.size());
  if (nest.loops.size() > kMostLoops) {
    Device::get().fail({ErrorCode::device, "an operator walks more than six loops that cannot be joined", {}, {}});
    return walk;
  }
  for (const auto size : sizes) walk.count *= size;
  for (std::size_t l = 0; l < nest.loops.size(); ++l) {
    const auto& loop = nest.loops[nest.loops.size() - 1 - l];
    walk.size[l] = loop.size;
    for (std::size_t a = 0; a < kArrays; ++a) walk.stride[a][l] = loop.strides[a];
  }
  return walk;
}

/// One array of a walk, and where it begins; an address of 0 is not read.
struct Walked {
  int array = 0;
  Place place;
};
/// Makes a step of the walk kPack elements where they lie together in each of these arrays, and at an address that they
/// can be read from at once. False: it is left as it is.
template <int kArrays>
bool in_packs(Walk<kArrays>& walk, std::span<const Walked> arrays) {
  if (walk.loops < 1 || walk.size[0] % kPack != 0) return false;
  for (const auto& [array, place] : arrays) {
    if (place.address == 0) continue;
    if (walk.stride[array][0] != 1 || place.address % static_cast<u64>(kPack * place.element_bytes) != 0) return false;
    for (i64 l = 1; l < walk.loops; ++l)
      if (walk.stride[array][l] % kPack != 0) return false;
  }
  walk.size[0] /= kPack;
  walk.count /= kPack;
  for (int a = 0; a < kArrays; ++a) walk.stride[a][0] *= kPack;
  return true;
}

/// to[...] = or += from[...]; several elements may come from one.
void move_strided(const Strides& sizes, Place from, const Strides& from_strides, Place to, const Strides& to_strides,
                  bool add = false);

/// One of the sums of Summand (kernel_source.cpp), by its number there, with the arrays that it reads.
enum class SumOf : std::uint8_t { a, squares, products, normal, centred_squares, scaled, scaled_normal, mean };
struct SumArrays {
  Place a{}, b{}, mean{}, inverse{}, scale{};  ///< mean and inverse are floats
};
/// to[...] = factor x the sum over all loops that `to` (strides[0]) does not walk; strides of a, b, mean and inverse,
/// scale follow. `size`: elements of `to`; those that no loop reaches become 0.
void sum_over(const Strides& sizes, const std::array<Strides, 5>& strides, SumOf what, const SumArrays& arrays,
              Place to, std::size_t size, double factor = 1);
/// The same for the gradient of operand e.wanted; strides of the result, of y and of the operands.
void sum_elementwise(const Strides& sizes, const std::array<Strides, 8>& strides, const Elementwise& e, Place to,
                     std::size_t size);
void largest_over(const Strides& sizes, const Strides& x_strides, const Strides& y_strides, Place x, Place dy, Place to,
                  std::size_t size);

/// y = a x b, summed over loops that y does not walk (0: not walked), by matrix products where it is one. `bias`, if
/// given, is added on the way where it lies along the columns; false: that is still to be done.
bool contract(const Strides& sizes, Place a, const Strides& a_strides, Place b, const Strides& b_strides, Place y,
              const Strides& y_strides, std::size_t y_size, Place bias = {}, const Strides& bias_strides = {});

/// Room for sums that several threads add to: `to` itself, or, where that keeps less than a float, whole ones that it
/// gets in the end. Cleared.
class RoomForSums {
 public:
  explicit RoomForSums(Array& to) : RoomForSums(to.data(), to.size()) {}
  RoomForSums(Place to, std::size_t size);
  ~RoomForSums();
  RoomForSums(const RoomForSums&) = delete;
  RoomForSums& operator=(const RoomForSums&) = delete;
  Place data() const { return sums_; }

 private:
  Place to_, sums_;
  std::size_t size_;
  Array room_;
};

inline Strides none(std::size_t loops) { return Strides(loops, 0); }

}  // namespace turnpoint::step::in_cuda
