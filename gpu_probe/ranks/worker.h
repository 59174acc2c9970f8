// SPDX-License-Identifier: Apache-2.0
// One rank: opens its device and measures the job's items in step with the other ranks.
#pragma once

#include "gpu_probe/transport/crew.h"

namespace turnpoint::probe {

int run_worker(const WorkerOptions& options);

}  // namespace turnpoint::probe
