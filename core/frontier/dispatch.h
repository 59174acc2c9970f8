// SPDX-License-Identifier: Apache-2.0
// Run-time choice of the instruction set for plain loops that the compiler vectorises. Sanitizers run before the
// loader's resolvers are safe, so their builds take the default.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace turnpoint::frontier::detail {

/// Whole cache lines: a vector of sixteen floats is one of them.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kAlignment); }
  /// resize() leaves numbers uninitialised: every table is written before it is read.
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(static_cast<Args&&>(args)...);
  }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};
using LaneValues = std::vector<float, LineAllocator<float>>;

}  // namespace turnpoint::frontier::detail

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TURNPOINT_VECTOR_CLONES
#elif defined(__clang__)
#define TURNPOINT_VECTOR_CLONES
#elif defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#define TURNPOINT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TURNPOINT_VECTOR_CLONES
#endif
