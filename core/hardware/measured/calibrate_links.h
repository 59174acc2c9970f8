// SPDX-License-Identifier: Apache-2.0
// Constants of the ring formulas out of measurements: what a group that nobody measured costs follows its neighbours.
#pragma once

#include <string>
#include <vector>

#include "core/hardware/cluster.h"
#include "core/hardware/logs/measured_log.h"

namespace turnpoint {

/// Fits bandwidth and latency of each link level to the measured collectives of the cluster, to a log's bus bandwidths
/// where there is no curve, and to the bandwidth between two devices where there is neither; marks what was fitted as
/// calibrated. Bandwidth: the median over kinds at the largest size of the largest group; latency: the same at the
/// smallest, where that is at most 64 KiB.
void calibrate_links(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes);

/// Takes the devices of a node and what joins them: fewer NVLinks than the preset's device has scale its bandwidth
/// down, none leave the PCIe link; the node's network cards, where their speed is named, make the link between nodes.
void take_topology(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes);

}  // namespace turnpoint
