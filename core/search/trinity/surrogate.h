// SPDX-License-Identifier: Apache-2.0
// What the policy learns from: the clipped surrogate of PPO (Schulman et al., arXiv 1707.06347, eq. 7) and the plain
// policy gradient, per decision. Decisions are the units' groups and the groups' devices.
//
// Trinity's eq. (14) prints the maximum of the two terms, which rewards leaving the trust region; PPO is the minimum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace turnpoint::trinity {

/// min(ratio advantage, clip(ratio, 1 - epsilon, 1 + epsilon) advantage).
double clipped_surrogate(double ratio, double advantage, double epsilon);
/// Its derivative by the logarithm of the ratio: ratio advantage where the first term is the minimum, else 0.
double clipped_surrogate_slope(double ratio, double advantage, double epsilon);

/// How a batch of decisions becomes a loss.
struct Weighting {
  bool clipped = true;  ///< PPO; else the plain policy gradient, advantage times the logarithm
  /// One ratio for all decisions of a rollout, as printed. The sum of thousands of logarithms leaves the bounds in one
  /// step, so it is kept to +-20 before it is an exponent; else every decision has a ratio of its own.
  bool joint = false;
  double epsilon = 0.2;
  double entropy = 0.15;  ///< reward per nat of each decision's distribution
  /// Of the advantage and of the bonus, what a unit's decision has. What one of thousands of units does to the reward
  /// is lost in what the others do: with all of it their groups dissolve.
  double unit_share = 1;
};

/// One rollout's decisions of one kind. `old` and `now` are logarithms of probabilities.
struct Decisions {
  std::vector<std::uint32_t> choice;
  std::vector<float> old;
  std::vector<std::uint8_t> counts;  ///< empty: all; else whether the decision made a difference
  bool counted(std::size_t i) const { return counts.empty() || counts[i]; }
};

struct Credit {
  double advantage = 0;
  double imitation = 0;  ///< weight of the decisions' likelihood; such a rollout has no advantage
  double share = 1;      ///< of the loss: one by the number of rollouts
};

/// Sum over counted decisions of now - old.
double log_ratio(const Decisions& decisions, const std::vector<double>& now);
/// Loss of the decisions, and its derivatives by `now`. `joint_log_ratio` is of all decisions of the rollout; a joint
/// ratio's loss is the rollout's, and the same for each of its kinds of decisions.
double decision_loss(const Weighting& weighting, const Credit& credit, const Decisions& decisions,
                     const std::vector<double>& now, double joint_log_ratio, std::vector<double>& derivative);

/// A choice of a row, and the loss's derivative by its log-probability.
struct Chosen {
  std::uint32_t choice = 0;
  double derivative = 0;
};
/// Adds to d_scores (one row of `columns`) the derivatives by the scores of all that was chosen of that row, and of
/// -entropy_weight times the row's entropy, which is returned.
template <class Real>
double add_row_derivative(const Real* log_probability, std::size_t columns, const std::vector<Chosen>& chosen,
                          double entropy_weight, Real* d_scores);

/// EMA_N (Trinity, eq. 15): (2 b + (N - 1) before) / (N + 1), beginning with the first b.
class MovingBaseline {
 public:
  explicit MovingBaseline(double n) : n_(n) {}
  bool empty() const { return empty_; }
  double value() const { return value_; }
  /// Goes on from there.
  void set(double value) {
    value_ = value;
    empty_ = false;
  }
  void add(double b) {
    value_ = empty_ ? b : (2 * b + (n_ - 1) * value_) / (n_ + 1);
    empty_ = false;
  }

 private:
  double n_, value_ = 0;
  bool empty_ = true;
};

}  // namespace turnpoint::trinity
