// SPDX-License-Identifier: Apache-2.0
// Programs in Python that carry an exported plan out under its engine and say what a step took.
#pragma once

#include <string>

#include "core/validation/engine/engine_step.h"

namespace turnpoint {

/// Run as "python FILE FOLDER" in every process; the folder has the exported program as plan.py and the job as
/// job.json. Its messages are lines of JSON on standard output:
///   {"type": "progress", "phase": TEXT, "fraction": 0 to 1, or -1}
///   {"type": "error", "what": TEXT}
///   {"type": "result", ...}: EngineMeasurement by its names
std::string program_of(const Engine& engine);

}  // namespace turnpoint
