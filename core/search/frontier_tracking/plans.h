// SPDX-License-Identifier: Apache-2.0
// Unrolls points of a frontier answer to complete plans.
#pragma once

#include <memory>
#include <vector>

#include "core/base/discard.h"
#include "core/frontier/packed_points.h"
#include "core/plan/result.h"
#include "core/search/frontier_tracking/costs.h"

namespace turnpoint::search {

/// Holds the choices of all points and builds one plan when it is asked for. Immutable but for a memory of what plans
/// of one frontier have in common, nearly everything: paths of reshardings and costs of operators.
class FrontierPlans : public PlanSource {
 public:
  FrontierPlans(std::shared_ptr<const Prices> prices, const std::vector<frontier::Point>& points);
  /// The last holder is often the interface thread.
  ~FrontierPlans() override;
  AnyPlan plan(std::size_t point) const override;
  PlanKind kind(std::size_t point) const override;
  std::size_t bytes() const override;

 private:
  struct Known;  ///< paths and operators that earlier plans were made of; guarded
  std::shared_ptr<const Prices> prices_;
  frontier::PackedPoints points_;
  std::shared_ptr<Known> known_;
};

/// A result of `method` on the scenario from an answer: points with their compute and network parts, turning point,
/// plans on demand. A pool shares the work.
ResultPtr make_result(std::string method, ScenarioPtr scenario, std::shared_ptr<const Prices> prices,
                      const PricedProblem& priced, frontier::Answer answer, double search_s,
                      ThreadPool* pool = nullptr);

}  // namespace turnpoint::search
