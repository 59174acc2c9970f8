// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of one host share: who waits for whom, and a slot of data per rank.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/expected.h"
#include "core/hardware/probe_job.h"

namespace turnpoint::probe {

/// A mapped region. Movable; unmapped with the last owner. The file descriptor is given to the ranks.
class SharedRegion {
 public:
  static constexpr std::size_t kSlotFloats = 64 * 1024;  ///< 256 KiB: two slots of two ranks stay in a core's L2

  static Expected<SharedRegion> create(int ranks);  ///< makes the file, all counters 0
  static Expected<SharedRegion> attach(int file, int ranks);
  SharedRegion(SharedRegion&& other) noexcept;
  SharedRegion& operator=(SharedRegion&&) = delete;
  ~SharedRegion();

  int file() const { return file_; }
  int ranks() const { return ranks_; }
  /// Every wait of every rank returns false from now on.
  void abort();
  bool aborted() const;

  using Counter = std::atomic<std::uint64_t>;
  Counter& arrived(int rank, int peer) { return counter(0, rank, peer); }  ///< barriers of `rank` with `peer`
  Counter& posted(int rank, int peer) { return counter(1, rank, peer); }   ///< chunks sent
  Counter& taken(int rank, int peer) { return counter(2, rank, peer); }    ///< chunks received
  float* in(int rank) { return slot(rank, 0); }
  float* out(int rank) { return slot(rank, 1); }

 private:
  SharedRegion(int file, int ranks, void* base, std::size_t bytes)
      : file_(file), ranks_(ranks), base_(base), bytes_(bytes) {}
  static Expected<SharedRegion> map(int file, int ranks);
  Counter& counter(int kind, int rank, int peer);
  float* slot(int rank, int which);

  int file_ = -1, ranks_ = 0;
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace turnpoint::probe
