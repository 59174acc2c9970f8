// SPDX-License-Identifier: Apache-2.0
// Plans with parts of unlike size (core/plan/ratio_plan.h) as a user drags them: behind the name of a method that makes
// such plans, "by-hand=0@0.62" is that method's plan with the borders moved. Methods do not know: what stands around
// them takes the parameter out, and moves what they find.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/plan/ratio_change.h"
#include "core/search/method/method.h"

namespace turnpoint::search {

struct ByHand {
  RatioMoves moves;    ///< empty: the plan as it is found
  std::string others;  ///< the method's own parameters
};

/// Usage error of this method: moves that cannot be read, or none.
Expected<ByHand> take_by_hand(const std::string& method, std::string_view parameters);
/// The parameters with these moves after those that they have.
std::string with_by_hand(std::string_view parameters, const RatioMoves& moves);
/// How the parameter is written, for people.
std::string by_hand_words();
/// "by-hand=", what the parameter begins with.
std::string by_hand_begin();
/// What `found` finds, with these moves. `title` is its method's, `parameters` are all that it was asked with.
std::unique_ptr<Searcher> moved_by_hand(std::unique_ptr<Searcher> found, std::string title, std::string parameters,
                                        RatioMoves moves);

}  // namespace turnpoint::search
