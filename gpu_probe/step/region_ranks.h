// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of one host: the step's exchanges through the memory that the probe's ranks share.
//
// The probe's own collectives move floats of equal counts; a step also wants pieces of any length, and its proof wants
// doubles. So this goes through the same slots and counters with its own two lengths, and doubles travel as pairs of
// floats whose bits are copied, never computed with.
#pragma once

#include <memory>

#include "gpu_probe/ranks/shared_region.h"
#include "gpu_probe/step/communicator.h"

namespace turnpoint::step::TURNPOINT_REAL {

/// The region must outlive the communicator and be used by nothing else while a step runs.
std::unique_ptr<Communicator> region_communicator(probe::SharedRegion& region, int rank);

/// One rank of many, without the others: what they would send is filled with this rank's own numbers.
std::unique_ptr<Communicator> lone_communicator(int ranks, int rank);

}  // namespace turnpoint::step::TURNPOINT_REAL
