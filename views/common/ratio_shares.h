// SPDX-License-Identifier: Apache-2.0
// How a ratio plan's first cut shares out every operator between the two halves of all devices, and by which type every
// cut on the way to the first device does.
#pragma once

#include <QString>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/ratio_plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint::views {

/// "4 × V100-16GB", "V100-16GB", "4 × V100-16GB and 2 × A100-80GB", in the order in which kinds are met.
QString devices_text(const std::vector<std::uint32_t>& devices, const Cluster& cluster);
/// The same of a part's devices; the part begins at this place of the plan's order.
QString devices_text(const RatioPlan& plan, const Cluster& cluster, std::uint32_t part, std::uint32_t first);

/// Seen from the stronger half: the one whose devices compute more together, by peak and efficiency at the scenario's
/// precision; the first one where both are as strong.
class RatioShares {
 public:
  static constexpr double kBoth = -1;  ///< both halves do all of the operator
  /// Steps of a scale that is the same for all plans: three below a half, about a half, three above it.
  static constexpr int kSteps = 7, kEven = 3;
  static constexpr int kBothStep = kSteps;  ///< the step of operators that both halves do

  /// Null where nothing is cut, or the plan is not one of the scenario's model.
  static std::shared_ptr<const RatioShares> make(const RatioPlanPtr& plan, const ScenarioPtr& scenario);

  double of(OperatorId op) const { return part_[op.index]; }  ///< the stronger half's part, in [0, 1], or kBoth
  std::size_t operators() const { return part_.size(); }
  /// Of the layer that the operator is or follows, at a level (an axis of as_axes()); nothing where both halves do all
  /// of the operator, where it is data, and in plans that do not tell what follows what.
  std::optional<PartitionType> type(OperatorId op, std::size_t level) const;
  const QString& stronger() const { return stronger_; }
  const QString& weaker() const { return weaker_; }
  static int step_of(double part);                ///< 0 .. kSteps - 1, or kBothStep
  static QString step_words(int step);            ///< "60% to 75%"
  static QString range(double low, double high);  ///< "68%", "67.5% – 68%"
  /// "68% on 4 × A100-80GB, 32% on 4 × V100-16GB", "both halves do all of it".
  QString words(OperatorId op) const;
  /// The same of one operator or more: from the least to the most that either half has of one. Those that both halves
  /// do are left out unless all are such.
  QString words(std::span<const OperatorId> ops) const;

 private:
  std::vector<double> part_;                                      // by operator
  std::vector<std::vector<std::optional<PartitionType>>> types_;  // by level, then operator
  QString stronger_, weaker_;
};
using RatioSharesPtr = std::shared_ptr<const RatioShares>;

}  // namespace turnpoint::views
