// SPDX-License-Identifier: Apache-2.0
// What a method that learns to place has to show while it does: how reward, baseline, best time and entropy go over its
// iterations, and the best placement so far.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/placement.h"

namespace turnpoint {

/// After an iteration.
struct LearningPoint {
  std::uint64_t iteration = 0;             ///< counted from 1
  std::uint64_t calls = 0;                 ///< placements tried until then
  std::optional<double> reward, baseline;  ///< mean of the placements that fit, and its moving mean; none: none fitted
  std::optional<double> best_s;            ///< time of the best placement so far, where it fits
  double entropy = 0;                      ///< nats, mean of a decision

  friend bool operator==(const LearningPoint&, const LearningPoint&) = default;
};

/// Written by the search, read by whoever shows it; thread-safe.
class Learning : public ProgressDetail {
 public:
  /// Of more iterations every second, fourth, ... is kept, and the newest.
  static constexpr std::size_t kMostPoints = 4096;

  struct Best {
    std::shared_ptr<const Placement> placement;  ///< null: there is none yet
    std::uint64_t number = 0;                    ///< how many there were before it
  };

  /// Seconds of the placement that learning begins with, where that fits.
  void begin_with(double seconds);
  void add(const LearningPoint& point);
  /// A placement that is better than all before.
  void keep(Placement placement);
  /// All that learning can go on from later (core/search/trinity/saved_state.h).
  void set_state(std::string bytes);

  std::optional<double> begun_s() const;
  std::vector<LearningPoint> points() const;
  Best best() const;
  /// Null: there is none yet.
  std::shared_ptr<const std::string> state() const;

 private:
  mutable std::mutex mutex_;
  std::optional<double> begun_s_;
  std::vector<LearningPoint> points_;
  std::uint64_t stride_ = 1;
  Best best_;
  std::shared_ptr<const std::string> state_;
};

/// What is gained on the placement that it began with, nothing included: "3.2 % faster than it began", "no faster than
/// it began".
std::string gain_words(double begun_s, double best_s);

}  // namespace turnpoint
