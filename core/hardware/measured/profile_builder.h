// SPDX-License-Identifier: Apache-2.0
// One hardware profile out of any set of measured logs, a preset filling what they do not tell; and what a person needs
// to judge it: which numbers are measured, calibrated or modelled, and what was wrong with the files.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/cluster.h"
#include "core/hardware/logs/measured_log.h"

namespace turnpoint {

/// Where the time of one collective on one shape of group, or of one kind of operator, comes from.
struct CoverageItem {
  enum class What : std::uint8_t { collective, operators };
  What what = What::collective;
  std::string name;   ///< "all_reduce"; an operator kind, or "other operators"
  DeviceGroup group;  ///< collectives only
  Origin origin = Origin::modelled;
  std::size_t samples = 0;                 ///< measured ones
  double least_bytes = 0, most_bytes = 0;  ///< between these a measured curve is interpolated, beyond them extrapolated
};

/// Every collective on every group shape that a mesh of this cluster makes (as many at once as fit), then the measured
/// groups of other shapes, then the operator kinds. Modelled: ring formula with data-sheet constants.
std::vector<CoverageItem> coverage(const Cluster& cluster);

/// A profile's measured collectives as curves again.
std::vector<MeasuredCurve> curves_of(const Cluster& cluster);

/// A file of a set that could not be read, and why; the others are taken without it.
struct UnreadFile {
  std::string path;
  Error error;
};

/// Everything a page about a profile shows. `cluster` is null where no file tells the device and no preset was given.
struct HardwareReport {
  std::vector<MeasuredLog> logs;  ///< in the order of the files; curves with spread, figures, topologies, problems
  std::vector<UnreadFile> unread;
  ClusterPtr cluster;
  std::string no_cluster;  ///< why there is none
  std::vector<CoverageItem> coverage;
  std::vector<std::string> notes;  ///< what was decided in merging, and what was filled in from where
};

/// Merges logs into a cluster. Its device, shape and whatever was not measured come from `base`, or without one from
/// the preset of the device that the logs name; the shape then is the largest that a log saw. Link constants are fitted
/// to measured collectives (calibrated); sizes measured in several files are merged by their median. Usage error where
/// neither tells the device.
Expected<ClusterPtr> build_profile(const std::vector<MeasuredLog>& logs, const ClusterPtr& base,
                                   std::vector<std::string>& notes);

/// Reads files of any kind: measured logs, and at most one hardware profile, which becomes the base unless one is
/// given. A log that cannot be read is left out and listed; it is the error where no other was read, and so is a
/// broken profile, since another base would be another machine.
Expected<HardwareReport> read_hardware_files(const std::vector<std::string>& paths, const ClusterPtr& base = nullptr);

/// A cluster from one file, a profile or a measured log that names its device.
Expected<ClusterPtr> read_hardware_file(const std::string& path);

}  // namespace turnpoint
