// SPDX-License-Identifier: Apache-2.0
// What a ratio plan would be with other ratios than its method found, and such moves as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/ratio_plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// The plan whose cut of this number gives its first half `ratio`, priced. Shares of the cut move with it: by the same
/// factor of first to second half, so that an operator whose share was the ratio has the new one. Below, every operator
/// keeps its parts of what there is then, in whole units; a loop of one unit is not cut any more. What runs again stays
/// the same. An update stays shared out, in its shares, where both halves still hold the weights alike, and is whole
/// elsewhere. Usage error: no such cut, or a ratio that is not between 0 and 1.
Expected<RatioPlan> with_ratio(const Scenario& scenario, const RatioPlan& plan, std::uint32_t cut, double ratio);

struct RatioMove {
  std::uint32_t cut = 0;  ///< of the plan that the moves before this one make
  double ratio = 0.5;
  friend bool operator==(const RatioMove&, const RatioMove&) = default;
};
using RatioMoves = std::vector<RatioMove>;

/// One move after another as with_ratio() makes them, priced once. Usage error: as there.
Expected<RatioPlan> with_moves(const Scenario& scenario, const RatioPlan& plan, const RatioMoves& moves);
/// `moves` of `found` and one more. One that moves the cut of the last one again takes its place, so that a hand that
/// moves a border in many steps leaves one move behind.
RatioMoves moved_further(const RatioPlan& found, RatioMoves moves, RatioMove next);
/// "0@0.62+3@0.4": the cut's number, the ratio; read_moves() reads back the same.
std::string text_of_moves(const RatioMoves& moves);
/// Usage error: not such a text.
Expected<RatioMoves> read_moves(std::string_view text);
/// "4 \u00d7 V100-16GB: 66.5 % of the work of both halves, not 62.1 %", one a move, for people.
std::vector<std::string> describe_moves(const Scenario& scenario, const RatioPlan& plan, const RatioMoves& moves);

}  // namespace turnpoint
