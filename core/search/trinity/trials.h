// SPDX-License-Identifier: Apache-2.0
// What is settled before anything is learnt, by trying it out: how units are joined, and how many groups there are.
#pragma once

#include <optional>

#include "core/base/progress.h"
#include "core/search/trinity/evaluation.h"
#include "core/search/trinity/problem.h"
#include "core/search/trinity/random_streams.h"
#include "core/search/trinity/trainer.h"

namespace turnpoint::trinity {

struct ToLearn {
  Problem problem;
  /// Groups begin as pieces that exchange little; else as what is begun with has them.
  bool pieces = true;
  /// Where pieces are taken after some were tried out.
  struct Tried {
    Evaluated best;   ///< of all placements that were drawn
    Decided decided;  ///< the best of those that were drawn of the pieces that are taken
  };
  std::optional<Tried> tried = {};
};

/// Units of a large graph can be joined in two ways, and of the numbers of groups that are to be tried none suits every
/// network. The combination is taken whose pieces are faster in the mean on devices drawn at random; draws are the same
/// for all of one number of groups. Where there is nothing to choose nothing is tried, and of a budget of seconds a
/// third at most is spent, but for the combination that was begun. With a placement to begin with (`begun`) the same is
/// tried and taken, so that learning finds what it would find from nothing; where the settings name the number of
/// groups, these are made of that placement and nothing is tried.
ToLearn problem_to_learn(const TaskGraph& graph, const placement::PlacementRequest& request, const Settings& settings,
                         bool begun, Evaluation& evaluation, const RunContext& context);

}  // namespace turnpoint::trinity
