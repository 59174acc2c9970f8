// SPDX-License-Identifier: Apache-2.0
// Alone, because what is defined for this source alone would keep the others from sharing a precompiled header.
#include "gpu_probe/ranks/host_part.h"

namespace turnpoint::probe {

const char* program_version() { return TURNPOINT_VERSION; }

}  // namespace turnpoint::probe
