// SPDX-License-Identifier: Apache-2.0
// What a training step on this rank takes for an operator beside its kernel: finding what it reads, making room for what
// it writes, letting go of what nobody reads any more, looking at the clock.
#pragma once

#include <memory>

#include "core/base/expected.h"

namespace turnpoint::step {

class TimedOperators {
 public:
  virtual ~TimedOperators() = default;
  /// Runs a step of a long chain and of a short one; seconds of a phase of one operator by which they differ.
  virtual Expected<double> once() = 0;
};

/// Chains of activations of a few dozen numbers each, whose kernels take next to nothing, on one rank.
Expected<std::unique_ptr<TimedOperators>> timed_operators();

}  // namespace turnpoint::step
