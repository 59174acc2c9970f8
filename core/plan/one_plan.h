// SPDX-License-Identifier: Apache-2.0
// One plan as a list: of a longer list, or one that is there already.
#pragma once

#include <memory>
#include <utility>

#include "core/plan/result.h"

namespace turnpoint {

class OnePlan : public PlanSource {
 public:
  OnePlan(std::shared_ptr<const PlanSource> all, std::size_t point) : all_(std::move(all)), point_(point) {}
  AnyPlan plan(std::size_t) const override { return all_->plan(point_); }
  PlanKind kind(std::size_t) const override { return all_->kind(point_); }
  std::size_t bytes() const override { return all_->bytes(); }

 private:
  std::shared_ptr<const PlanSource> all_;
  std::size_t point_;
};

/// A plan over operators that is there already.
class GivenPlan : public PlanSource {
 public:
  explicit GivenPlan(Plan plan) : plan_(std::make_shared<const Plan>(std::move(plan))) {}
  AnyPlan plan(std::size_t) const override { return plan_; }
  PlanKind kind(std::size_t) const override { return plan_->pipeline ? PlanKind::pipeline : PlanKind::sharding; }
  std::size_t bytes() const override {
    return plan_->operators.size() * sizeof(PlanOperator) + plan_->reshards.size() * sizeof(PlanReshard);
  }

 private:
  PlanPtr plan_;
};

}  // namespace turnpoint
