// SPDX-License-Identifier: Apache-2.0
// What a placement is worth to the policy: Trinity's reward of runtime, communication and memory (eq. 8), and the
// runtime-only reward of its predecessor.
//
// The paper's equation has no term for memory although it states a third weight; its text and tables have one. Peaks
// are the largest over pairs of devices and over devices. A gigabyte is 1e9 bytes.
#pragma once

#include "core/base/expected.h"

namespace turnpoint::trinity {

struct RewardWeights {
  double runtime = 0.5, communication = 0.3, memory = 0.2;       ///< alpha, beta, gamma
  double communication_tolerance = 8e9, memory_tolerance = 8e9;  ///< bytes; what is below costs nothing

  /// Usage error: a weight below zero or none above it, a tolerance that is not above zero.
  Expected<void> check() const;
};

/// -log(alpha f + beta max(0, C - tolerance) + gamma max(0, M - tolerance)), of seconds and gigabytes; the argument is
/// never taken below 1e-9.
double trinity_reward(const RewardWeights& weights, double seconds, double communication_bytes, double memory_bytes);
/// -sqrt(seconds) (Mirhoseini et al., A Hierarchical Model for Device Placement, ICLR 2018).
double runtime_reward(double seconds);

}  // namespace turnpoint::trinity
