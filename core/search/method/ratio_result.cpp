// SPDX-License-Identifier: Apache-2.0
#include "core/search/method/ratio_result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace turnpoint::search {

namespace {

/// One ratio plan.
class OneRatioPlan : public PlanSource {
 public:
  explicit OneRatioPlan(RatioPlanPtr plan) : plan_(std::move(plan)) {}
  AnyPlan plan(std::size_t) const override { return plan_; }
  PlanKind kind(std::size_t) const override { return PlanKind::ratio; }
  std::size_t bytes() const override {
    return plan_->operators.size() *
           (plan_->cuts.size() * (sizeof(RatioPlan::Share) + sizeof(double)) + sizeof(RatioPlan::Item));
  }

 private:
  RatioPlanPtr plan_;
};

}  // namespace

std::shared_ptr<Result> result_of(const ScenarioPtr& scenario, RatioPlan&& plan) {
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  ResultPoint point;
  point.memory_bytes = plan.most_memory();
  point.time_s = plan.cost.time_s(), point.compute_s = plan.cost.compute_s(), point.network_s = plan.cost.network_s();
  point.fits = fits(*scenario, plan);
  result->points.push_back(point);
  if (point.fits) result->near_best = 0;
  result->explanations.push_back(fmt::format("Memory is that of the device that needs most. {}.",
                                             fmt::join(describe_devices(*scenario, plan), "; ")));
  result->plans = std::make_shared<OneRatioPlan>(std::make_shared<const RatioPlan>(std::move(plan)));
  return result;
}

}  // namespace turnpoint::search
