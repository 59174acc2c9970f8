// SPDX-License-Identifier: Apache-2.0
// Data sheets of one device, on a profile: taken whole or not at all.
#pragma once

#include <string>
#include <vector>

#include "core/hardware/cluster.h"
#include "core/hardware/logs/measured_log.h"

namespace turnpoint {

/// A sheet of the profile's own device refines it. A sheet of another device replaces the device where it names memory,
/// memory bandwidth and both peaks, else it is refused. A note says which, for every sheet.
void take_sheets(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes);

}  // namespace turnpoint
