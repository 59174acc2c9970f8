// SPDX-License-Identifier: Apache-2.0
// How far each operator of a plan differs from another plan's, for colours.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/plan/plan_difference.h"

namespace turnpoint::views {

enum class DifferenceMark : std::uint8_t {
  none,     ///< as before
  tensors,  ///< only tensors that it makes move otherwise
  itself,   ///< it is treated otherwise
};
inline constexpr int kDifferenceMarks = 3;
/// Which of the five colours of cost it has: none, the middle, the strongest.
constexpr std::uint8_t heat_of(DifferenceMark mark) { return static_cast<std::uint8_t>(2 * static_cast<int>(mark)); }
/// [operator].
using DifferenceMarks = std::vector<DifferenceMark>;
using DifferenceMarksPtr = std::shared_ptr<const DifferenceMarks>;
DifferenceMarksPtr marks_of(const PlanDifference& difference, const Model& model);

}  // namespace turnpoint::views
