// SPDX-License-Identifier: Apache-2.0
// The points of one result as a table.
#include <fmt/format.h>

#include "core/export/format.h"
#include "core/export/writers.h"

namespace turnpoint {

std::string write_points_csv(const Result& result) {
  std::string csv =
      "point,memory_bytes,time_s,compute_s,network_s,fits,turning_point,near_best,peak_communication_bytes\r\n";
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const ResultPoint& point = result.points[i];
    csv +=
        fmt::format("{},{},{},{},{},{:d},{:d},{:d},{}\r\n", i, point.memory_bytes, point.time_s, point.compute_s,
                    point.network_s, point.fits, result.turning_point == i, result.near_best == i,
                    point.peak_communication_bytes ? fmt::to_string(*point.peak_communication_bytes) : std::string());
  }
  return csv;
}

ExportFormat points_csv_format() {
  return {.key = "points-csv",
          .subject = "Points",
          .name = "CSV",
          .file = "points.csv",
          .text = "One row per point of the frontier",
          .points = write_points_csv};
}

}  // namespace turnpoint
