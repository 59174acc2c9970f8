// SPDX-License-Identifier: Apache-2.0
#include "core/plan/learning.h"

#include <fmt/format.h>
#include <utility>

namespace turnpoint {

void Learning::begin_with(double seconds) {
  const std::lock_guard lock(mutex_);
  begun_s_ = seconds;
}

void Learning::add(const LearningPoint& point) {
  const std::lock_guard lock(mutex_);
  if (!points_.empty() && points_.back().iteration % stride_ != 0) points_.pop_back();  // the newest until now
  points_.push_back(point);
  if (points_.size() <= kMostPoints) return;
  stride_ *= 2;
  const LearningPoint newest = points_.back();
  std::erase_if(points_, [&](const LearningPoint& one) { return one.iteration % stride_ != 0; });
  if (points_.empty() || points_.back() != newest) points_.push_back(newest);
}

void Learning::keep(Placement placement) {
  auto kept = std::make_shared<const Placement>(std::move(placement));
  const std::lock_guard lock(mutex_);
  best_ = {std::move(kept), best_.placement ? best_.number + 1 : 0};
}

std::optional<double> Learning::begun_s() const {
  const std::lock_guard lock(mutex_);
  return begun_s_;
}

std::vector<LearningPoint> Learning::points() const {
  const std::lock_guard lock(mutex_);
  return points_;
}

void Learning::set_state(std::string bytes) {
  auto state = std::make_shared<const std::string>(std::move(bytes));
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

std::shared_ptr<const std::string> Learning::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

Learning::Best Learning::best() const {
  const std::lock_guard lock(mutex_);
  return best_;
}

std::string gain_words(double begun_s, double best_s) {
  if (!(best_s < begun_s)) return "no faster than it began";
  return fmt::format("{:.2g} % faster than it began", 100 * (1 - best_s / begun_s));
}

}  // namespace turnpoint
