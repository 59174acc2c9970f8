// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/pipeline_schedule.h"

#include <algorithm>

namespace turnpoint::search {

int in_flight(int stage, int stages, int micro_batches) { return std::min(stages - stage, micro_batches); }

std::vector<double> one_forward_one_backward(std::span<const StageTimes> stages, int micro_batches) {
  const int p = static_cast<int>(stages.size()), m = micro_batches;
  struct Progress {
    int forwards = 0, backwards = 0;  // done
    double free = 0;
  };
  std::vector<Progress> now(stages.size());
  // ended[stage][micro-batch], written before anybody may read it.
  std::vector<std::vector<double>> forward_end(stages.size()), backward_end(stages.size());
  // A stage runs as far as its inputs are there, then wakes its neighbours; every task is run once.
  std::vector<int> awake;
  for (int s = p - 1; s >= 0; --s) awake.push_back(s);
  while (!awake.empty()) {
    const int s = awake.back();
    awake.pop_back();
    const auto i = static_cast<std::size_t>(s);
    Progress& me = now[i];
    const int warm_up = std::min(p - 1 - s, m);
    const int forwards_before = me.forwards, backwards_before = me.backwards;
    for (;;) {
      const bool forward_next = me.forwards < m && (me.forwards < warm_up || me.forwards - warm_up == me.backwards);
      if (forward_next) {
        const auto j = static_cast<std::size_t>(me.forwards);
        if (s > 0 && forward_end[i - 1].size() <= j) break;
        me.free = std::max(me.free, s > 0 ? forward_end[i - 1][j] : 0.0) + stages[i].forward;
        forward_end[i].push_back(me.free);
        ++me.forwards;
      } else if (me.backwards < m) {
        const auto j = static_cast<std::size_t>(me.backwards);
        if (s + 1 < p && backward_end[i + 1].size() <= j) break;
        me.free = std::max(me.free, s + 1 < p ? backward_end[i + 1][j] : 0.0) + stages[i].backward;
        backward_end[i].push_back(me.free);
        ++me.backwards;
      } else {
        break;
      }
    }
    if (me.forwards > forwards_before && s + 1 < p) awake.push_back(s + 1);
    if (me.backwards > backwards_before && s > 0) awake.push_back(s - 1);
  }
  std::vector<double> ends;
  for (const auto& stage : now) ends.push_back(stage.free);
  return ends;
}

}  // namespace turnpoint::search
