// SPDX-License-Identifier: Apache-2.0
// The numbers of updates that take norms of whole parameters: LARS (You et al., arXiv 1708.03888) and LAMB (You et al.,
// arXiv 1904.00962) without weight decay and, of LAMB, without correction of the moments' bias; Adafactor (Shazeer and
// Stern, arXiv 1804.04235) with a constant decay and without momentum or relative steps.
#pragma once

#include <cmath>
#include <vector>

namespace turnpoint::step {

inline constexpr double kLarsTrust = 1e-3;  ///< as published

/// Of the squares' sums of a parameter and of its step the ratio of the norms. Of a parameter without weights or
/// without a step nothing is scaled.
inline double norm_ratio(double weights, double direction) {
  return weights > 0 && direction > 0 ? std::sqrt(weights / direction) : 1;
}

// Adafactor's: the paper's epsilon 1 and clipping threshold d; its decay rises towards 1, this one is where Adam's is.
inline constexpr double kFactorDecay = 0.999, kLeastSquare = 1e-30;  ///< of the means, and what squares are above
/// A mean with what is new.
inline double decayed(double mean, double now) { return kFactorDecay * mean + (1 - kFactorDecay) * now; }
inline constexpr double kLargestStep = 1;  ///< root mean square of a step, before the learning rate

/// Of a matrix's rows, or its columns: each mean with the sum of its squares, of so many elements. Returns where the
/// next sum stands.
inline const double* decay_means(std::vector<double>& means, const double* sums, std::size_t elements) {
  for (double& mean : means) mean = decayed(mean, *sums++ / static_cast<double>(elements));
  return sums;
}

}  // namespace turnpoint::step
