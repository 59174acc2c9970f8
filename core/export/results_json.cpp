// SPDX-License-Identifier: Apache-2.0
// turnpoint/result@1 or turnpoint/results@1, without plans.
#include "core/export/format.h"
#include "core/plan_io/result_text.h"

namespace turnpoint {

ExportFormat results_json_format() {
  return {.key = "results-json",
          .subject = "Results",
          .name = "JSON",
          .file = "results.json",
          .text = "All points of all methods",
          .results = [](const std::vector<ResultPtr>& results, const TextSink& sink) {
            return write_results_text(results, results.size() > 1, {}, sink, {});
          }};
}

}  // namespace turnpoint
