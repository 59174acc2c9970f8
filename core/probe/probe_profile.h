// SPDX-License-Identifier: Apache-2.0
// A hardware profile out of what turnpoint-probe measured: exact times by signature, constants per kind for every other
// size, the reached share of the device's peaks, links from collectives.
#pragma once

#include <string>
#include <vector>

#include "core/hardware/cluster.h"
#include "core/hardware/probe_messages.h"

namespace turnpoint {

/// How well the fitted constants give the times that they were fitted to, |fitted - measured| / measured.
struct FitError {
  std::string kind, phase;
  Precision precision = Precision::fp32;
  int samples = 0;
  double median = 0, worst = 0;
};

struct MeasuredProfile {
  ClusterPtr cluster;
  std::vector<FitError> errors;
};

/// `base`: the cluster whose devices these are, keeping its shape and its links; null: what the probe saw, with the
/// data sheet's figures where the device is one we know. fp32 with tf32 off fills the fp32 figures, or, with `tf32`,
/// fp32 with tf32 on. Device error where nothing useful was measured.
Expected<MeasuredProfile> measured_profile(const ProbeMessages& messages, const ClusterPtr& base, bool tf32);

}  // namespace turnpoint
