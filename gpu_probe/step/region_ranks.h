// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of one host: the step's exchanges through the memory that the probe's ranks share.
#pragma once

#include <memory>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/transport/shared_region.h"

namespace turnpoint::step {

/// The region must outlive the communicator and be used by nothing else while a step runs.
std::unique_ptr<Communicator> region_communicator(probe::SharedRegion& region, int rank);

}  // namespace turnpoint::step
