// SPDX-License-Identifier: Apache-2.0
// What a choice costs: the best plan in which operators do as they are told, beside the plan of a point that is free.
// It comes from the search that found the point, over the choices that are left (frontier_tracking/forced_search.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan_difference.h"
#include "core/plan/result.h"
#include "core/search/explain/force_words.h"
#include "core/search/frontier_tracking/forced_search.h"

namespace turnpoint {

/// A plan with the choice.
struct ForcedPlan {
  ResultPoint point;
  PlanPtr plan;
  /// No plan with the choice is better by a larger share: faster within this memory or, where it does not fit, of less
  /// memory; 0: none is.
  double gap = 0;
  bool within = true;  ///< it needs no more than the memory asked for; else no plan that does was found
};

struct ForcedAnswer {
  std::size_t index = 0;  ///< of the point
  ResultPoint point;
  PlanPtr plan;
  std::vector<ForceRule> rules;
  std::vector<search::RuleReach> reach;  ///< of each rule
  bool already = false;                  ///< the plan, which the search found, does so; it is then the answer itself
  ForcedPlan same_memory;                ///< in no more memory than the point
  ForcedPlan fitting;                    ///< in the memory of the devices
  std::optional<std::size_t> fastest;    ///< of the result's own points: the fastest that fits, by plain sums
  PlanDifference difference;             ///< same_memory.plan beside the point's
};

/// Answers questions about one point and keeps what they have in common. One question at a time.
class PointExplainer {
 public:
  /// Usage error: a plan that does not split operators, or one with pipeline stages: the search has no choices for
  /// them.
  static Expected<std::unique_ptr<PointExplainer>> make(ResultPtr result, std::size_t point);

  /// Errors: those of apply_force(); cancelled; infeasible where no plan does all that is asked.
  Expected<ForcedAnswer> force(const std::vector<ForceRule>& rules, const RunContext& context);
  /// The choices that an operator has.
  Expected<std::vector<ForcedChoice>> choices(OperatorId op, const RunContext& context);

 private:
  PointExplainer(ResultPtr result, std::size_t point, PlanPtr plan, const std::vector<int>& micro_batches);

  ResultPtr result_;
  std::size_t point_;
  PlanPtr plan_;
  search::ForcedSearch search_;
};

}  // namespace turnpoint
