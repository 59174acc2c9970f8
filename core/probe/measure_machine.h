// SPDX-License-Identifier: Apache-2.0
// "Measure this machine" in one call, for the command line and the window alike: what to measure, the probe's run, the
// profile out of it. Blocks; progress and stop are the context's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/hardware/measured_cache.h"
#include "core/hardware/probe_client.h"
#include "core/probe/probe_items.h"
#include "core/probe/probe_profile.h"

namespace turnpoint {

struct MeasureOptions {
  std::string program;  ///< of turnpoint-probe; empty: find_probe()
  ProbeBackend backend = ProbeBackend::automatic;
  int device = 0;  ///< which GPU
  int ranks = 0;   ///< CPU ranks; 0: one a core, 2 to 8. Of the backend cuda: GPUs from `device` on; 0: all alike
  CpuKernels cpu_kernels = CpuKernels::automatic;
  double budget_s = 60, item_s = 0.2;
  std::vector<ProbePrecision> precisions;  ///< empty: all that the backend has
  bool tf32 = false, check = false;
  bool hot = false;  ///< also times with the numbers in the caches; CPU ranks always
  ModelPtr model;    ///< whose operators are measured besides the standard shapes; may be null
  int devices = 0;   ///< it is split over up to so many; 0: the ranks
  ClusterPtr base;   ///< of measured_profile(); may be null
  /// What starts the probe on several hosts (ProbeLaunch::launcher). `ranks` must be given then: how many processes it
  /// starts is known to nobody else.
  std::vector<std::string> launcher;
  /// Sizes of collectives between the listed ones, where a point is off the line between its neighbours by more: 0
  /// none.
  double refine = 0.1;
  bool fresh = false;         ///< measure everything, also what was measured before on this device
  double most_age_days = 30;  ///< what is older is measured again
  std::filesystem::path kept_in = measured_cache_folder();  ///< empty: nothing is kept or taken from there
  std::filesystem::path use_file;  ///< where measurements see each other (core/base/machine_use.h); empty: as usual
  std::function<void(const std::string& line)> on_line;  ///< what the probe says, as it comes
};

/// The job for a backend that is known.
ProbeJob measurement_job(const MeasureOptions& options, ProbeBackend backend, std::vector<std::string>& left_out);

struct Measurement {
  ProbeMessages messages;
  MeasuredProfile profile;
  std::vector<std::string> left_out;  ///< kinds of operator without a kernel in the probe
  int reused = 0;                     ///< times taken over from earlier runs
  std::string reused_since;           ///< the oldest of them
  std::vector<std::string> warnings;  ///< what is wrong with the times kept before
};

/// "120 of 240 times were measured before, since 2026-11-20"; empty where none was.
std::string reuse_text(const Measurement& measured);

/// Errors as run_probe(). The probe is asked first what is there (`automatic` too); times that were measured on the
/// same device with the same libraries before are taken over and only the others are measured. What was measured until
/// an error is kept for the next time.
Expected<Measurement> measure_machine(const MeasureOptions& options, const RunContext& context);

/// Makes it hardware `local`.
Expected<void> keep_as_local(const Cluster& cluster);

}  // namespace turnpoint
