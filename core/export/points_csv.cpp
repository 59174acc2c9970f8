// SPDX-License-Identifier: Apache-2.0
// The points of one result as a table.
#include "core/export/format.h"
#include "core/plan/export.h"

namespace turnpoint {

ExportFormat points_csv_format() {
  return {.key = "points-csv",
          .subject = "Points",
          .name = "CSV",
          .file = "points.csv",
          .text = "One row per point of the frontier",
          .points = write_points_csv};
}

}  // namespace turnpoint
