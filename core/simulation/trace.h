// SPDX-License-Identifier: Apache-2.0
// A simulation as a trace in the JSON event format that chrome://tracing and Perfetto open: a process per device with a
// lane for computing and one for sending, flows from each transfer to the tasks that waited for it, memory as counters.
#pragma once

#include <string>

#include "core/simulation/schedule.h"
#include "core/simulation/simulator.h"

namespace turnpoint {

/// Times are microseconds, as the format wants them. Memory counters only where the simulation recorded memory.
std::string write_trace(const TaskGraph& graph, const Placement& placement, const Simulation& simulation);

/// The same of a schedule, that of a sharding plan above all: a process per role, a lane each for computing and
/// communication, flows where one lane waited for another, memory as counters.
std::string write_trace(const Schedule& schedule);

}  // namespace turnpoint
