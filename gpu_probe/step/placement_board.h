// SPDX-License-Identifier: Apache-2.0
// What the ranks of a placed step share: tensors on their way from one to another, a place to meet, and what each rank
// has to say at the end. Ranks are threads, or processes of one host; or threads that share a GPU and its one stream.
// There what is on its way lies in the GPU's memory, and is posted once its copying is queued: whoever takes it in then
// queues behind that.
//
// Every transfer has room of its own, so nobody ever waits to send; a rank may write into it again once all ranks have
// met behind the step in which it was read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/expected.h"
#include "gpu_probe/step/values/block.h"

namespace turnpoint::step {

class PlacementBoard {
 public:
  struct Shape {
    int ranks = 1;
    std::vector<std::size_t> transfer_elements;  ///< by transfer
    std::size_t results = 0;                     ///< numbers of each rank
  };
  using Ended = std::function<bool()>;  ///< whether some rank has gone in a way that the board does not know of

  static Expected<std::unique_ptr<PlacementBoard>> in_memory(const Shape& shape);
  /// In a file that all ranks have open (memfd), far behind what else it holds and apart from a board of other numbers;
  /// every rank makes its own.
  static Expected<std::unique_ptr<PlacementBoard>> in_file(int file, const Shape& shape, Ended ended);
  PlacementBoard(const PlacementBoard&) = delete;
  PlacementBoard& operator=(const PlacementBoard&) = delete;
  ~PlacementBoard();

  Place room(std::size_t transfer) {
    if (on_device_) return there_.data() + static_cast<std::int64_t>(rooms_[transfer]);
    return {base_ + rooms_[transfer], element_bytes_};
  }
  /// The room holds `elements` numbers of this step.
  void post(std::size_t transfer, std::uint64_t step, std::uint64_t elements);
  bool is_posted(std::size_t transfer, std::uint64_t step) const;
  /// How many numbers were posted. Error: another rank has given up.
  Expected<std::uint64_t> wait_for(std::size_t transfer, std::uint64_t step) const;
  /// Returns when all ranks have come for the `meeting`th time (1, 2, ...). Error: another rank has given up.
  Expected<void> meet(std::uint64_t meeting);
  void give_up();
  bool given_up() const;  ///< or gone in a way that the board does not know of
  /// A word of one rank's, to be heard by all behind the next meeting and before the one after it.
  void tell(bool word);
  bool told() const;
  /// The memory of all rooms goes back to the system, of the file's other users too: behind the last use by any rank.
  void give_back();
  double* results(int rank) { return reinterpret_cast<double*>(base_ + results_) + std::size_t(rank) * shape_.results; }

 private:
  explicit PlacementBoard(const Shape& shape);
  Expected<void> wait(const std::function<bool()>& done) const;
  using Counter = std::atomic<std::uint64_t>;
  Counter& counter(std::size_t index) const { return *reinterpret_cast<Counter*>(base_ + index * kLine); }
  static constexpr std::size_t kLine = 64;

  Shape shape_;
  const bool on_device_;
  const int element_bytes_;
  Ended ended_;
  int file_ = -1;
  std::vector<std::size_t> rooms_;  ///< bytes behind `base_`, or elements in the device's memory
  Array there_;
  std::size_t results_ = 0, bytes_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace turnpoint::step
