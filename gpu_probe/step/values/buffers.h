// SPDX-License-Identifier: Apache-2.0
// The memory of one rank. A step makes and frees the same buffers again and again, so those given back are kept for the
// next of their size: a page is touched for the first time once a run, not once a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace turnpoint::step {

class Buffers {
 public:
  using Allocate = void* (*)(std::size_t bytes);  ///< null: there is no room
  using Release = void (*)(void* data);
  Buffers();  ///< of this process
  Buffers(Allocate allocate, Release give_back) : allocate_(allocate), give_back_(give_back) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers();
  /// The one of this thread: a rank is a thread or a process.
  static Buffers& of_this_rank();
  /// Scratch inside kernels and exchanges, which a plan does not speak of: counted apart.
  static Buffers& scratch_of_this_rank();
  /// What no device would hold: counted nowhere.
  static Buffers& outside_of_this_rank();

  /// Aligned to a cache line, not initialised. Throws std::bad_alloc. Must be given back by the same thread.
  void* take(std::size_t bytes);
  void give(void* data, std::size_t bytes);

  std::int64_t now() const { return now_; }    ///< bytes taken and not given back
  std::int64_t peak() const { return peak_; }  ///< the most of it since the last reset
  void reset_peak() { peak_ = now_; }
  /// Gives back what is kept for later.
  void release();

 private:
  Allocate allocate_;
  Release give_back_;
  std::map<std::size_t, std::vector<void*>> free_;
  std::int64_t now_ = 0, peak_ = 0;
};

}  // namespace turnpoint::step
