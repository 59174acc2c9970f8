// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_board.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <string>

namespace turnpoint::step::TURNPOINT_REAL {

namespace {

#ifndef TURNPOINT_STEP_CUDA
/// The file is sparse: nothing lies between. The proof has a board of its own.
constexpr off_t kBehindRegion = off_t(1) << (sizeof(Real) == sizeof(double) ? 32 : 42);
#endif
constexpr std::size_t kGivenUpAt = 0, kArrivedAt = 1, kWordAt = 2, kFirstTransferAt = 3;

Error no_board(std::size_t bytes) {
  return {ErrorCode::device,
          "no shared memory of " + std::to_string(bytes) + " bytes for transfers: " + std::strerror(errno),
          {},
          "a smaller batch or model"};
}

}  // namespace

// A line for each counter; of a transfer two, the step it is of and how much there is.
PlacementBoard::PlacementBoard(const Shape& shape) : shape_(shape) {
  bytes_ = (kFirstTransferAt + 2 * shape.transfer_elements.size()) * kLine;
  std::size_t there = 0;
  for (const std::size_t elements : shape.transfer_elements) {
    const std::size_t lines = (elements * sizeof(Real) + kLine - 1) / kLine;
    rooms_.push_back(kOnDevice ? there : bytes_);
    (kOnDevice ? there : bytes_) += lines * (kOnDevice ? kLine / sizeof(Real) : kLine);
  }
  if (kOnDevice) there_ = Array::outside(there);
  results_ = bytes_;
  bytes_ += static_cast<std::size_t>(shape.ranks) * shape.results * sizeof(double);
}

Expected<std::unique_ptr<PlacementBoard>> PlacementBoard::in_memory(const Shape& shape) {
  std::unique_ptr<PlacementBoard> board(new PlacementBoard(shape));
  void* base = mmap(nullptr, board->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return no_board(board->bytes_);
  board->base_ = static_cast<std::byte*>(base);
  return board;
}

#ifndef TURNPOINT_STEP_CUDA
Expected<std::unique_ptr<PlacementBoard>> PlacementBoard::in_file(int file, const Shape& shape, Ended ended) {
  std::unique_ptr<PlacementBoard> board(new PlacementBoard(shape));
  board->ended_ = std::move(ended);
  board->file_ = file;
  // Whoever comes first makes the file longer; to make it as long once more changes nothing.
  struct stat now {};
  const off_t wanted = kBehindRegion + static_cast<off_t>(board->bytes_);
  if (fstat(file, &now) != 0 || (now.st_size < wanted && ftruncate(file, wanted) != 0)) return no_board(board->bytes_);
  void* base = mmap(nullptr, board->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, kBehindRegion);
  if (base == MAP_FAILED) return no_board(board->bytes_);
  board->base_ = static_cast<std::byte*>(base);
  return board;
}

#endif

PlacementBoard::~PlacementBoard() {
  if (base_) munmap(base_, bytes_);
}

Expected<void> PlacementBoard::wait(const std::function<bool()>& done) const {
  for (std::uint64_t spins = 0; !done(); ++spins) {
    if (spins < 200) continue;
    if (given_up()) return Error{ErrorCode::device, "another rank gave up", {}, {}};
    sched_yield();
  }
  return {};
}

void PlacementBoard::post(std::size_t transfer, std::uint64_t step, std::uint64_t elements) {
  counter(kFirstTransferAt + 2 * transfer + 1).store(elements, std::memory_order_relaxed);
  counter(kFirstTransferAt + 2 * transfer).store(step, std::memory_order_release);
}

bool PlacementBoard::is_posted(std::size_t transfer, std::uint64_t step) const {
  return counter(kFirstTransferAt + 2 * transfer).load(std::memory_order_acquire) == step;
}

Expected<std::uint64_t> PlacementBoard::wait_for(std::size_t transfer, std::uint64_t step) const {
  if (auto done = wait([&] { return is_posted(transfer, step); }); !done) return done.error();
  return counter(kFirstTransferAt + 2 * transfer + 1).load(std::memory_order_relaxed);
}

Expected<void> PlacementBoard::meet(std::uint64_t meeting) {
  counter(kArrivedAt).fetch_add(1, std::memory_order_acq_rel);
  const std::uint64_t all = meeting * static_cast<std::uint64_t>(shape_.ranks);
  return wait([&] { return counter(kArrivedAt).load(std::memory_order_acquire) >= all; });
}

void PlacementBoard::give_up() { counter(kGivenUpAt).store(1, std::memory_order_release); }
bool PlacementBoard::given_up() const {
  return counter(kGivenUpAt).load(std::memory_order_acquire) != 0 || (ended_ && ended_());
}

void PlacementBoard::tell(bool word) { counter(kWordAt).store(word ? 1 : 0, std::memory_order_release); }
bool PlacementBoard::told() const { return counter(kWordAt).load(std::memory_order_acquire) != 0; }

void PlacementBoard::give_back() {
#ifndef TURNPOINT_STEP_CUDA
  // Where that cannot be done, the memory is merely not to be had until the end.
  if (file_ >= 0)
    (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kBehindRegion, static_cast<off_t>(bytes_));
#endif
}

}  // namespace turnpoint::step::TURNPOINT_REAL
