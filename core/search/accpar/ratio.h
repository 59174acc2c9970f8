// SPDX-License-Identifier: Apache-2.0
// How much of every layer the first of two unlike halves gets, once types are chosen (AccPar, section 5.3).
#pragma once

#include <span>
#include <vector>

#include "core/search/accpar/prices.h"

namespace turnpoint::accpar {

/// Time of one half as a function of its share s: compute * s + fixed + fetch * (1 - s) + exchange * s * (1 - s).
struct ShareTime {
  double compute = 0;   ///< all FLOP
  double fixed = 0;     ///< partial sums
  double fetch = 0;     ///< tensors that the half needs whole
  double exchange = 0;  ///< tensors that pass between rows and columns
  double at(double share) const { return compute * share + fixed + (fetch + exchange * share) * (1 - share); }
  ShareTime& operator+=(const ShareTime& other);
  friend bool operator==(const ShareTime&, const ShareTime&) = default;
};

/// One layer with the tensor that brings its input, or one further tensor: what the slower half needs for it is paid.
struct RatioTerm {
  std::array<ShareTime, 2> halves;
  double at(double ratio) const { return std::max(halves[0].at(ratio), halves[1].at(1 - ratio)); }
  friend bool operator==(const RatioTerm&, const RatioTerm&) = default;
};

/// The terms of an assignment; equal ones are kept, so that their sum at a ratio is level_cost() without whole units.
std::vector<RatioTerm> ratio_terms(const LayerGraph& graph, std::span<const Type> types, const Halves& halves);

/// Ratios stay this far from 0 and 1: beyond, one half would do nothing.
inline constexpr double kLeastRatio = 1e-4;

/// E_j / (E_i + E_j) of the times of whole shares: the paper's formula, which takes all costs as proportional to the
/// share.
double paper_ratio(std::span<const RatioTerm> terms);
/// Where both halves need the same time over all terms, by bisection on the real functions.
double balanced_ratio(std::span<const RatioTerm> terms);
/// Where the sum of all terms is least. Between the ratios at which some term's halves cross every term is straight or
/// bends down, so the minimum lies at one of them (or at an end).
double least_ratio(std::span<const RatioTerm> terms);

}  // namespace turnpoint::accpar
