// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/shared_region.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

namespace turnpoint::probe {

namespace {

constexpr std::size_t kLine = 64, kPage = 4096;
constexpr std::size_t kSlotBytes = SharedRegion::kSlotFloats * sizeof(float);

std::size_t header_bytes(int ranks) {
  const auto r = static_cast<std::size_t>(ranks);
  return (kLine + 3 * r * r * kLine + kPage - 1) / kPage * kPage;
}
std::size_t region_bytes(int ranks) { return header_bytes(ranks) + static_cast<std::size_t>(ranks) * 2 * kSlotBytes; }

}  // namespace

Expected<SharedRegion> SharedRegion::map(int file, int ranks) {
  const std::size_t bytes = region_bytes(ranks);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (base == MAP_FAILED)
    return Error{ErrorCode::device, fmt::format("shared memory of {} bytes: {}", bytes, std::strerror(errno)), {}, {}};
  return SharedRegion(file, ranks, base, bytes);
}

Expected<SharedRegion> SharedRegion::create(int ranks) {
  const int file = memfd_create("turnpoint-probe", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(region_bytes(ranks))) != 0) {
    Error error{
        ErrorCode::device, fmt::format("no shared memory for {} ranks: {}", ranks, std::strerror(errno)), {}, {}};
    if (file >= 0) close(file);
    return error;
  }
  return map(file, ranks);
}

Expected<SharedRegion> SharedRegion::attach(int file, int ranks) { return map(file, ranks); }

SharedRegion::SharedRegion(SharedRegion&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      ranks_(other.ranks_),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_) {}

SharedRegion::~SharedRegion() {
  if (base_) munmap(base_, bytes_);
  if (file_ >= 0) close(file_);
}

// A fresh file is all zeros, which is every counter's first value.
SharedRegion::Counter& SharedRegion::counter(int kind, int rank, int peer) {
  const auto r = static_cast<std::size_t>(ranks_);
  const std::size_t index =
      (static_cast<std::size_t>(kind) * r + static_cast<std::size_t>(rank)) * r + static_cast<std::size_t>(peer);
  static_assert(sizeof(Counter) <= kLine && Counter::is_always_lock_free);
  return *reinterpret_cast<Counter*>(static_cast<char*>(base_) + kLine + index * kLine);
}

float* SharedRegion::slot(int rank, int which) {
  const std::size_t index = 2 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(which);
  return reinterpret_cast<float*>(static_cast<char*>(base_) + header_bytes(ranks_) + index * kSlotBytes);
}

void SharedRegion::abort() { reinterpret_cast<Counter*>(base_)->store(1, std::memory_order_release); }
bool SharedRegion::aborted() const {
  return reinterpret_cast<const Counter*>(base_)->load(std::memory_order_acquire) != 0;
}

}  // namespace turnpoint::probe
