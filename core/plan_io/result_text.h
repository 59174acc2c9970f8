// SPDX-License-Identifier: Apache-2.0
// Results as text, piece by piece: the plans of a whole frontier are tens of gigabytes (BERT-large on 16 devices:
// 50,000 points of some 370 KB), and neither they nor the tree of the document are ever there at once.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "core/base/file_writer.h"
#include "core/base/progress.h"
#include "core/plan/result.h"

namespace turnpoint {

/// Which points of a result are written with their plans. `plans` stays parallel to `points`, null where a plan was
/// left out.
struct WrittenPlans {
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  std::size_t at_most = 0;  ///< of each result
};

/// So many points spread evenly over the result's, rising. Among them, where the number allows, in this order: the
/// turning point, the fastest that fits, least memory, least time, the least memory near the best time.
std::vector<std::size_t> points_with_plans(const Result& result, std::size_t at_most);

/// Bytes that write_results_text() will write of plans, from some of them; 0 where there are few.
double estimated_plan_bytes(const std::vector<ResultPtr>& results, const WrittenPlans& plans);

/// turnpoint/result@1 of the one result, or turnpoint/results@1 where `as_list`: to the byte the text of write_result()
/// and write_results(), indented by one, and a line break. Plans are unrolled by `context.threads` threads, the same
/// text on any number of them. Errors: the sink's; cancelled.
Expected<void> write_results_text(const std::vector<ResultPtr>& results, bool as_list, const WrittenPlans& plans,
                                  const TextSink& sink, const RunContext& context);

}  // namespace turnpoint
