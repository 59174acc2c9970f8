// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/simulation/simulator.h"

namespace turnpoint {
namespace {

/// Walks from the last completion back to time 0. Every step begins exactly when something ended (the simulator takes
/// the maximum of instants, never a sum of its own), so the cause is found by comparing doubles for equality.
class Walk {
 public:
  Walk(const TaskGraph& graph, const Placement& placement, const Simulation& simulation)
      : graph_(graph), placement_(placement), sim_(simulation) {
    run_place_.resize(graph.task_count());
    for (std::uint32_t at = 0; at < sim_.run.size(); ++at) run_place_[sim_.run[at]] = at;
    sent_place_.resize(sim_.transfers.size());
    for (std::uint32_t at = 0; at < sim_.sent.size(); ++at) sent_place_[sim_.sent[at]] = at;
  }

  std::vector<CriticalStep> steps() {
    std::vector<CriticalStep> path;
    CriticalStep step = last();
    for (;;) {
      CriticalStep before;
      const bool found = step.is_transfer ? before_transfer(step, before) : before_task(step, before);
      path.push_back(step);
      if (!found) break;
      step = before;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  /// Whatever completes last has no consumer, or is followed by one that completes in the same instant.
  CriticalStep last() const {
    TaskIndex t = 0;
    while (sim_.end_s[t] != sim_.makespan_s || !graph_.successors(t).empty()) ++t;
    return {false, t, false};
  }

  bool before_task(CriticalStep& step, CriticalStep& before) const {
    const TaskIndex t = step.index;
    const double start = sim_.start_s[t];
    for (const TaskIndex from : graph_.predecessors(t)) {
      if (placement_.device[from] == placement_.device[t]) {
        if (sim_.end_s[from] != start) continue;
        before = {false, from, false};
        return true;
      }
      const std::uint32_t transfer = find_transfer(from, placement_.device[t]);
      if (sim_.transfers[transfer].end_s != start) continue;
      before = {true, transfer, false};
      return true;
    }
    const std::uint32_t place = run_place_[t];
    if (place == sim_.run_begin[placement_.device[t]]) return false;
    before = {false, sim_.run[place - 1], false};
    step.waited = true;
    return sim_.end_s[before.index] == start;
  }

  bool before_transfer(CriticalStep& step, CriticalStep& before) const {
    const SimulatedTransfer& transfer = sim_.transfers[step.index];
    if (sim_.end_s[transfer.source] == transfer.start_s) {
      before = {false, transfer.source, false};
      return true;
    }
    before = {true, sim_.sent[sent_place_[step.index] - 1], false};
    step.waited = true;
    return true;
  }

  std::uint32_t find_transfer(TaskIndex source, std::uint32_t to) const {
    const auto found =
        std::lower_bound(sim_.transfers.begin(), sim_.transfers.end(), std::pair(source, to),
                         [](const SimulatedTransfer& a, const auto& key) { return std::pair(a.source, a.to) < key; });
    return std::uint32_t(found - sim_.transfers.begin());
  }

  const TaskGraph& graph_;
  const Placement& placement_;
  const Simulation& sim_;
  std::vector<std::uint32_t> run_place_, sent_place_;
};

}  // namespace

std::vector<CriticalStep> critical_path(const TaskGraph& graph, const Placement& placement,
                                        const Simulation& simulation) {
  return Walk(graph, placement, simulation).steps();
}

}  // namespace turnpoint
