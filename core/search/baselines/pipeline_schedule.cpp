// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/pipeline_schedule.h"

#include <algorithm>

#include "core/plan/pipeline_order.h"

namespace turnpoint::search {

std::vector<double> ends_of_passes(std::span<const StageTimes> runs, int micro_batches, int chunks,
                                   bool forwards_first) {
  constexpr double kNotYet = -1;
  const std::size_t p = runs.size() / static_cast<std::size_t>(chunks), m = static_cast<std::size_t>(micro_batches);
  std::vector<std::vector<PipelineStep>> order;
  for (std::size_t s = 0; s < p; ++s)
    order.push_back(pipeline_order(int(s), int(p), chunks, micro_batches, forwards_first));
  std::vector<std::vector<double>> forward_end(runs.size(), std::vector<double>(m, kNotYet)),
      backward_end = forward_end;
  std::vector<std::size_t> done(p, 0);
  std::vector<double> free(p, 0);
  // A stage runs as far as its inputs are there, then wakes its neighbours; every step is run once.
  std::vector<std::size_t> awake;
  for (std::size_t s = p; s-- > 0;) awake.push_back(s);
  while (!awake.empty()) {
    const std::size_t s = awake.back();
    awake.pop_back();
    const std::size_t before = done[s];
    for (; done[s] < order[s].size(); ++done[s]) {
      const PipelineStep& step = order[s][done[s]];
      const std::size_t run = static_cast<std::size_t>(step.chunk) * p + s, j = static_cast<std::size_t>(step.batch);
      double ready = 0;
      if (step.forward && run > 0) ready = forward_end[run - 1][j];
      if (!step.forward && run + 1 < runs.size()) ready = backward_end[run + 1][j];
      if (ready == kNotYet) break;
      free[s] = std::max(free[s], ready) + (step.forward ? runs[run].forward : runs[run].backward);
      (step.forward ? forward_end : backward_end)[run][j] = free[s];
    }
    if (done[s] == before || p == 1) continue;
    awake.push_back((s + 1) % p);
    awake.push_back((s + p - 1) % p);
  }
  return free;
}

}  // namespace turnpoint::search
