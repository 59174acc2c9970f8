// SPDX-License-Identifier: Apache-2.0
// Memory of every device over time while tasks are being moved: the exact levels of one simulation, in buckets of equal
// length that keep their maximum, plus the changes that moves would make if nothing else shifted. Changes are rounded
// against the move, so what the ledger says fits would fit under the same times.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/model/placement.h"
#include "core/model/task_graph.h"
#include "core/simulation/simulator.h"

namespace turnpoint::pardnn {

class MemoryLedger {
 public:
  MemoryLedger(const TaskGraph& graph, const Placement& placement, const Simulation& simulation);

  std::uint32_t buckets() const { return buckets_; }
  std::int64_t level(std::uint32_t device, std::uint32_t bucket) const { return level_[row(device) + bucket]; }
  std::uint32_t bucket_of(double time) const;
  double time_of(std::uint32_t bucket) const { return width_ * bucket; }
  const std::vector<std::uint32_t>& device() const { return device_; }
  /// The most that all devices together hold at the beginning of any bucket, counting every tensor that is still to be
  /// read once however many devices have a copy. As long as tasks run when they do, no move makes it less.
  double least_total() const;

  /// A change of one device's level over buckets [begin, end).
  struct Change {
    std::uint32_t device, begin, end;
    std::int64_t bytes;
  };
  /// What moving the tasks from their devices to `to` changes.
  const std::vector<Change>& changes(const std::vector<TaskIndex>& tasks, std::uint32_t to);
  /// Moves the tasks, with the changes computed last.
  void apply(const std::vector<TaskIndex>& tasks, std::uint32_t to, const std::vector<Change>& changes);
  /// Whether, with these changes, no bucket that they raise is above its device's limit, unless it was higher before.
  bool fits(const std::vector<Change>& changes, const std::vector<std::int64_t>& limit);

  /// When the tensor is on the device: [begin, end) of seconds, empty if never.
  struct Interval {
    double begin = 0, end = 0;
    bool empty() const { return end <= begin; }
  };
  Interval life(TaskIndex tensor, std::uint32_t device) const;

 private:
  std::size_t row(std::uint32_t device) const { return std::size_t(device) * buckets_; }
  std::int64_t size_on(TaskIndex tensor, std::uint32_t device) const;
  void add_difference(std::uint32_t device, std::int64_t before_bytes, Interval before, std::int64_t after_bytes,
                      Interval after);
  void add_change(std::uint32_t device, Interval life, std::int64_t bytes);

  const TaskGraph& graph_;
  const Simulation& simulation_;
  std::vector<std::uint32_t> device_;
  std::uint32_t buckets_ = 1;
  double width_ = 1;
  std::vector<std::int64_t> level_, raised_;
  std::vector<Change> changes_;
  std::vector<TaskIndex> tensors_;
  struct Before {
    TaskIndex tensor;
    std::uint32_t device;
    std::int64_t bytes;
    Interval life;
  };
  std::vector<Before> before_;
};

}  // namespace turnpoint::pardnn
