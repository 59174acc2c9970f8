// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: the step's exchanges over whatever carries the probe's bytes.
//
// Numbers travel as their bits. In float the collectives over equal pieces are those that `measure` times; everything
// else, and all of the proof's doubles, goes through the rings of Communicator, so that processes compute bit for bit
// what ranks that are threads compute.
#pragma once

#include <memory>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/transport/collectives.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::step {

/// Both must outlive the communicator and be used by nothing else while a step runs.
std::unique_ptr<Communicator> carried_communicator(probe::Communicator& collectives, probe::Transport& transport);

}  // namespace turnpoint::step
