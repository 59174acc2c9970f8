// SPDX-License-Identifier: Apache-2.0
// What a point is, in the words of those who train; which split of one's own comes nearest to it, and what that would
// cost instead; what more memory, faster links and faster devices would be worth to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/plan/resemblance.h"
#include "core/plan/result.h"

namespace turnpoint {

/// A split that can be written down, carried out in the point's scenario.
struct NamedStrategy {
  std::string name;   ///< of the method with its parameters: "manual:dp=8:tp=2:zero=1"
  std::string words;  ///< what its plan resembles
  ResultPoint point;
  ResultPtr result = nullptr;  ///< of that method, whose first point it is
};

/// The same plan on slightly better hardware.
struct Worth {
  enum class Of { intra_bandwidth, inter_bandwidth, device_speed };
  Of of = Of::device_speed;
  double more = 0;    ///< by so much: bytes/s, FLOP/s
  double time_s = 0;  ///< which the plan then takes
};

struct PointStory {
  std::size_t index = 0;
  ResultPoint point;
  PlanPtr plan;
  Resemblance resembles;
  std::optional<NamedStrategy> nearest;
  std::string why_none;  ///< where there is no nearest: why the method refuses it
  /// Of the result's own points the fastest that needs at most kMoreMemory more, where it is faster.
  std::optional<std::size_t> with_more_memory;
  std::vector<Worth> worth;  ///< links that the machine has, then devices

  static constexpr std::int64_t kMoreMemory = std::int64_t(1) << 30;
  static constexpr double kMoreBandwidth = 1e9, kMoreSpeed = 1e12;
};

/// The split that comes nearest to a point's plan (below); nullopt: the method refuses all that are near. Errors as
/// below.
Expected<std::optional<NamedStrategy>> nearest_split(const Result& result, std::size_t point,
                                                     const RunContext& context);

/// Nearest is the split with as many tensor groups, stages and micro-batches, the stage of ZeRO that most weights have,
/// and of the ways to run again the one that runs again nearest as much. Usage error: a plan that does not split
/// operators. Cancelled.
Expected<PointStory> story_of(const Result& result, std::size_t point, const RunContext& context);

}  // namespace turnpoint
