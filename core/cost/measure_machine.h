// SPDX-License-Identifier: Apache-2.0
// "Measure this machine" in one call, for the command line and the window alike: what to measure, the probe's run, the
// profile out of it. Blocks; progress and stop are the context's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/cost/probe_items.h"
#include "core/cost/probe_profile.h"
#include "core/hardware/probe_client.h"

namespace turnpoint {

struct MeasureOptions {
  std::string program;  ///< of turnpoint-probe; empty: find_probe()
  ProbeBackend backend = ProbeBackend::automatic;
  int device = 0;  ///< which GPU
  int ranks = 0;   ///< CPU ranks; 0: one a core, 2 to 8
  double budget_s = 60, item_s = 0.2;
  std::vector<ProbePrecision> precisions;  ///< empty: all that the backend has
  bool tf32 = false, hot = false, check = false;
  ModelPtr model;   ///< whose operators are measured besides the standard shapes; may be null
  int devices = 0;  ///< it is split over up to so many; 0: the ranks
  ClusterPtr base;  ///< of measured_profile(); may be null
  std::function<void(const std::string& line)> on_line;  ///< what the probe says, as it comes
};

/// The job for a backend that is known.
ProbeJob measurement_job(const MeasureOptions& options, ProbeBackend backend, std::vector<std::string>& left_out);

struct Measurement {
  ProbeMessages messages;
  MeasuredProfile profile;
  std::vector<std::string> left_out;  ///< kinds of operator without a kernel in the probe
};

/// Errors as run_probe(). `automatic` is asked of the probe first.
Expected<Measurement> measure_machine(const MeasureOptions& options, const RunContext& context);

/// Makes it hardware `local`.
Expected<void> keep_as_local(const Cluster& cluster);

}  // namespace turnpoint
