// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/surrogate.h"

#include <algorithm>
#include <cmath>

#include "core/search/trinity/networks/product.h"

namespace turnpoint::trinity {

double clipped_surrogate(double ratio, double advantage, double epsilon) {
  return std::min(ratio * advantage, std::clamp(ratio, 1 - epsilon, 1 + epsilon) * advantage);
}

double clipped_surrogate_slope(double ratio, double advantage, double epsilon) {
  const bool outside = advantage >= 0 ? ratio > 1 + epsilon : ratio < 1 - epsilon;
  return outside ? 0 : ratio * advantage;
}

double log_ratio(const Decisions& decisions, const std::vector<double>& now) {
  double sum = 0;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (decisions.counted(i)) sum += now[i] - double(decisions.old[i]);
  return sum;
}

double decision_loss(const Weighting& weighting, const Credit& credit, const Decisions& decisions,
                     const std::vector<double>& now, double joint_log_ratio, std::vector<double>& derivative) {
  static constexpr double kLargestExponent = 20;
  const auto ratio_of = [](double log) { return std::exp(std::clamp(log, -kLargestExponent, kLargestExponent)); };
  derivative.assign(now.size(), 0);
  double loss = 0;
  const bool imitates = credit.imitation > 0;
  if (!imitates && weighting.clipped && weighting.joint) {
    const double ratio = ratio_of(joint_log_ratio);
    loss = -credit.share * clipped_surrogate(ratio, credit.advantage, weighting.epsilon);
    const double slope = std::abs(joint_log_ratio) < kLargestExponent
                             ? clipped_surrogate_slope(ratio, credit.advantage, weighting.epsilon)
                             : 0;
    for (std::size_t i = 0; i < now.size(); ++i)
      if (decisions.counted(i)) derivative[i] = -credit.share * slope;
    return loss;
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!decisions.counted(i)) continue;
    if (imitates) {
      loss -= credit.share * credit.imitation * now[i];
      derivative[i] = -credit.share * credit.imitation;
    } else if (!weighting.clipped) {
      loss -= credit.share * credit.advantage * now[i];
      derivative[i] = -credit.share * credit.advantage;
    } else {
      const double log = now[i] - double(decisions.old[i]), ratio = ratio_of(log);
      loss -= credit.share * clipped_surrogate(ratio, credit.advantage, weighting.epsilon);
      if (std::abs(log) < kLargestExponent)
        derivative[i] = -credit.share * clipped_surrogate_slope(ratio, credit.advantage, weighting.epsilon);
    }
  }
  return loss;
}

template <class Real>
double add_row_derivative(const Real* log_probability, std::size_t columns, const std::vector<Chosen>& chosen,
                          double entropy_weight, Real* d_scores) {
  double all = 0;
  for (const Chosen& one : chosen) {
    all += one.derivative;
    d_scores[one.choice] += Real(one.derivative);
  }
  std::vector<Real> share(log_probability, log_probability + columns);
  networks::exponentials(share.data(), columns);
  Real entropy = 0;
  for (std::size_t c = 0; c < columns; ++c) entropy -= share[c] * log_probability[c];
  for (std::size_t c = 0; c < columns; ++c)
    d_scores[c] += share[c] * (Real(entropy_weight) * (log_probability[c] + entropy) - Real(all));
  return double(entropy);
}

template double add_row_derivative(const float*, std::size_t, const std::vector<Chosen>&, double, float*);
template double add_row_derivative(const double*, std::size_t, const std::vector<Chosen>&, double, double*);

}  // namespace turnpoint::trinity
