// SPDX-License-Identifier: Apache-2.0
// The weights of a network as one block of numbers: layers know their places in it, so that gradients of several
// threads are blocks of the same shape that can be added in a fixed order.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/search/placement/random.h"

namespace turnpoint::trinity::networks {

/// A matrix within the block, row by row.
struct Slot {
  std::size_t offset = 0, rows = 0, columns = 0;
  std::size_t size() const { return rows * columns; }
};

/// Hands out places and remembers between which bounds each begins.
class Places {
 public:
  /// Begins uniformly within +-`bound`.
  Slot add(std::size_t rows, std::size_t columns, double bound) {
    places_.push_back({size_, rows, columns});
    bounds_.push_back(bound);
    size_ += rows * columns;
    return places_.back();
  }
  /// The same with the usual bound 1 / sqrt(fan-in).
  Slot add_weight(std::size_t inputs, std::size_t outputs) {
    return add(inputs, outputs, 1 / std::sqrt(double(inputs ? inputs : 1)));
  }
  Slot add_bias(std::size_t outputs) { return add(1, outputs, 0); }
  std::size_t size() const { return size_; }

  template <class Real>
  std::vector<Real> begin_with(placement::Random& random) const {
    std::vector<Real> values(size_);
    for (std::size_t s = 0; s < places_.size(); ++s)
      for (std::size_t i = 0; i < places_[s].size(); ++i)
        values[places_[s].offset + i] = Real((2 * random.unit() - 1) * bounds_[s]);
    return values;
  }

 private:
  std::size_t size_ = 0;
  std::vector<Slot> places_;
  std::vector<double> bounds_;
};

/// Length of a gradient; not finite where any of its numbers is not.
double norm(const std::vector<float>& gradient);
/// Shortens a gradient to `limit` where it is longer.
void clip_norm(std::vector<float>& gradient, double limit);

/// Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1) with beta 0.9 and 0.999. A gradient that is not finite is left
/// out.
class Adam {
 public:
  /// Moving moments of the gradient, and the powers of beta that correct their beginning.
  struct Moments {
    std::vector<float> first, second;
    double first_power = 1, second_power = 1;
  };

  explicit Adam(std::size_t size) : moments_{std::vector<float>(size), std::vector<float>(size)} {}
  void step(const std::vector<float>& gradient, double rate, std::vector<float>& values);

  const Moments& moments() const { return moments_; }
  void set_moments(Moments moments) { moments_ = std::move(moments); }

 private:
  Moments moments_;
};

}  // namespace turnpoint::trinity::networks
