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
  /// `before`: one of another point, or of another result, whose search goes on where it is of the same scenario; may
  /// be null. Both together answer one question at a time. Usage error: a plan that does not split operators, or one
  /// with pipeline stages: the search has no choices for them.
  static Expected<std::unique_ptr<PointExplainer>> make(ResultPtr result, std::size_t point,
                                                        const PointExplainer* before = nullptr);

  /// What the first question would build, ahead of it; cancelled.
  Expected<void> get_ready(const RunContext& context);
  /// Errors: those of apply_force(); cancelled; infeasible where no plan does all that is asked.
  Expected<ForcedAnswer> force(const std::vector<ForceRule>& rules, const RunContext& context);
  /// The choices that an operator has; of several those that any of them has.
  Expected<std::vector<ForcedChoice>> choices(const std::vector<OperatorId>& operators, const RunContext& context);
  Expected<std::vector<ForcedChoice>> choices(OperatorId op, const RunContext& context) {
    return choices(std::vector{op}, context);
  }
  /// Whether the point's plan does so already with all of these operators that can.
  Expected<bool> does_already(const std::vector<OperatorId>& operators, const ForcedChoice& choice,
                              const RunContext& context);

 private:
  PointExplainer(ResultPtr result, std::size_t point, PlanPtr plan, std::shared_ptr<search::ForcedSearch> with);

  ResultPtr result_;
  std::size_t point_;
  PlanPtr plan_;
  std::shared_ptr<search::ForcedSearch> search_;
};

}  // namespace turnpoint
