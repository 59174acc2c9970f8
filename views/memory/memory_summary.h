// SPDX-License-Identifier: Apache-2.0
// What the memory view needs beside a schedule: the fullest sample of any stretch of time without looking at all of
// them, so that no peak is lost between two pixels, and which tensors live when.
//
// Immutable once made; made on any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/simulation/schedule.h"

namespace turnpoint::views {

/// One tensor that a device holds at an instant.
struct LiveTensor {
  TaskIndex task = 0;  ///< that made it
  std::int64_t bytes = 0;
  std::uint32_t from = kNone;  ///< device a copy came from; kNone: made here
};

class MemorySummary {
 public:
  /// Null of null.
  static std::shared_ptr<const MemorySummary> make(SchedulePtr schedule);

  const SchedulePtr& schedule() const { return schedule_; }
  std::size_t devices() const { return schedule_->devices.size(); }
  bool recorded(std::uint32_t device) const { return !samples(device).empty(); }
  bool recorded() const;
  const std::vector<MemorySample>& samples(std::uint32_t device) const;

  /// Index of the sample in force at an instant (the first one before the beginning).
  std::size_t at(std::uint32_t device, double instant) const;
  /// Index of the fullest sample of those in force somewhere in [from, to), the earliest of equals.
  std::size_t fullest(std::uint32_t device, double from, double to) const;
  std::int64_t total(std::uint32_t device, std::size_t sample) const { return curves_[device].total[sample]; }

  /// Largest of all peaks, and the device that has it first; kNone: no devices.
  std::int64_t largest_peak() const { return largest_peak_; }
  std::uint32_t fullest_device() const { return fullest_device_; }
  bool over(std::uint32_t device) const {
    return schedule_->devices[device].peak_bytes > schedule_->devices[device].memory_limit;
  }
  std::size_t devices_over() const;
  /// The first instant at which the device holds more than its limit.
  std::optional<double> first_over(std::uint32_t device) const;

  /// Tensors on a device at an instant, largest first, at most `most`; `count` and `bytes` of all of them. Nothing
  /// where tensors do not add up to what was recorded: then memory was not counted tensor by tensor.
  struct Live {
    std::vector<LiveTensor> largest;
    std::size_t count = 0;
    std::int64_t bytes = 0;
  };
  std::optional<Live> live_at(std::uint32_t device, double instant, std::size_t most) const;

 private:
  static constexpr std::size_t kFan = 16;
  struct Curve {
    std::vector<std::int64_t> total;                 ///< by sample
    std::vector<std::vector<std::uint32_t>> levels;  ///< fullest of each kFan entries of the level below
  };
  struct Copy {
    double start_s, end_s;
    TaskIndex task;
    std::uint32_t from;
    std::int64_t bytes;
  };
  void make_curve(std::uint32_t device);
  void find_lifetimes();
  std::uint32_t fullest_of(const Curve& curve, std::size_t first, std::size_t last) const;

  SchedulePtr schedule_;
  std::vector<Curve> curves_;
  std::vector<double> own_end_s_;          ///< by task: until when its tensor stays on its device
  std::vector<std::vector<Copy>> copies_;  ///< by device, by start
  std::int64_t largest_peak_ = 0;
  std::uint32_t fullest_device_ = kNone;
};
using MemorySummaryPtr = std::shared_ptr<const MemorySummary>;

}  // namespace turnpoint::views
