// SPDX-License-Identifier: Apache-2.0
// One plan of a longer list, as a list of its own.
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

}  // namespace turnpoint
