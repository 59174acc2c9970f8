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

namespace turnpoint::step {

namespace {

/// The file is sparse: nothing lies between. The proof has a board of its own.
off_t behind_region(int element_bytes) { return off_t(1) << (element_bytes == 8 ? 32 : 42); }
constexpr std::size_t kGivenUpAt = 0, kArrivedAt = 1, kWordAt = 2, kFirstTransferAt = 3;

Error no_board(std::size_t bytes) {
  return {ErrorCode::device,
          "no shared memory of " + std::to_string(bytes) + " bytes for transfers: " + std::strerror(errno),
          {},
          "a smaller batch or model"};
}

}  // namespace

// A line for each counter; of a transfer two, the step it is of and how much there is.
PlacementBoard::PlacementBoard(const Shape& shape)
    : shape_(shape), on_device_(arithmetic().on_device), element_bytes_(arithmetic().whole_bytes) {
  bytes_ = (kFirstTransferAt + 2 * shape.transfer_elements.size()) * kLine;
  const auto each = static_cast<std::size_t>(element_bytes_);
  std::size_t there = 0;
  for (const std::size_t elements : shape.transfer_elements) {
    const std::size_t lines = (elements * each + kLine - 1) / kLine;
    rooms_.push_back(on_device_ ? there : bytes_);
    (on_device_ ? there : bytes_) += lines * (on_device_ ? kLine / each : kLine);
  }
  if (on_device_) there_ = Array::outside(there);
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

Expected<std::unique_ptr<PlacementBoard>> PlacementBoard::in_file(int file, const Shape& shape, Ended ended) {
  std::unique_ptr<PlacementBoard> board(new PlacementBoard(shape));
  board->ended_ = std::move(ended);
  board->file_ = file;
  // Whoever comes first makes the file longer; to make it as long once more changes nothing.
  struct stat now {};
  const off_t behind = behind_region(board->element_bytes_), wanted = behind + static_cast<off_t>(board->bytes_);
  if (fstat(file, &now) != 0 || (now.st_size < wanted && ftruncate(file, wanted) != 0)) return no_board(board->bytes_);
  void* base = mmap(nullptr, board->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, behind);
  if (base == MAP_FAILED) return no_board(board->bytes_);
  board->base_ = static_cast<std::byte*>(base);
  return board;
}

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
  // Where that cannot be done, the memory is merely not to be had until the end.
  if (file_ >= 0)
    (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, behind_region(element_bytes_),
                    static_cast<off_t>(bytes_));
}

}  // namespace turnpoint::step
