// SPDX-License-Identifier: Apache-2.0
// At which slopes between memory and time lanes ask next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/frontier/bounds.h"

namespace turnpoint::frontier::detail {

/// Weights of `count` lanes that suit the achieved frontier: both ends (lanes 0 and 1), then slopes of its hull.
void choose_weights(const Achieved& achieved, std::size_t count, std::vector<double>& memory,
                    std::vector<double>& time);

/// Weights of `count` lanes around the chords at these memories, of those that have one: both ends (lanes 0 and 1), the
/// chords themselves, and slopes between those of their neighbours; of more than `count` - 2 memories the first. False
/// where none has one.
bool weights_at(const Achieved& achieved, std::span<const std::int64_t> limits, std::size_t count,
                std::vector<double>& memory, std::vector<double>& time);
/// The same around what bounds a problem like this one there; both ranges as first_weights() has them.
void weights_along(std::span<const BoundLine> lines, std::span<const std::int64_t> limits, std::size_t count,
                   std::vector<double>& memory, std::vector<double>& time);

/// What is better by a share: of the frontier's ranges, at a right angle to the chord; or of the time, at equal memory.
enum class Distance { of_ranges, of_time };

/// Weights along those chords of the achieved hull, at most `count`, behind which plans may hide that are better by
/// more than this share; the worst first.
void open_chords(const std::vector<HalfPlane>& planes, const Achieved& achieved, std::size_t count, double share,
                 std::vector<double>& memory, std::vector<double>& time, Distance distance = Distance::of_ranges);

}  // namespace turnpoint::frontier::detail
