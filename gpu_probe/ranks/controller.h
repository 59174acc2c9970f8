// SPDX-License-Identifier: Apache-2.0
// The probe's own process: starts the ranks, watches them, and is the only one that prints.
#pragma once

#include <string>

#include "core/hardware/probe_job.h"
#include "core/probe/step_job.h"
#include "gpu_probe/ranks/launch.h"

namespace turnpoint::probe {

inline constexpr int kDone = 0, kUsage = 2, kBadJob = 3, kDevice = 5, kInterrupted = 130;

/// Prints hello, progress, item, heartbeat and result or error lines to `out_file`; returns the exit code. `text` is
/// the job as it was read, which the ranks read again. `launch`: which other processes
/// have a part in it, if any; this one controls.
int run_job(const ProbeJob& job, const std::string& text, int out_file, const Launch& launch);

/// The same for a step job: operator and exchange lines instead of items.
int run_step_job(const StepJob& job, const std::string& text, int out_file, const Launch& launch);

/// The one line of a probe that cannot begin.
void print_error(int out_file, const Error& error);

}  // namespace turnpoint::probe
