// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/refinement.h"

#include <algorithm>

namespace turnpoint::pardnn {
namespace {

class Refiner {
 public:
  Refiner(const ScheduleCosts& costs, placement::Judge& judge, const RefinementOptions& options, Judged& candidate)
      : costs_(costs), g_(costs.graph()), judge_(judge), options_(options), best_(candidate) {}

  Expected<void> run(const Clusters* clusters, const RunContext& context) {
    if (costs_.devices() < 2) return {};
    if (clusters) {
      context.report("refinement: clusters", 0.6);
      device_ = best_.placement.device;
      if (move_clusters(*clusters))
        if (auto kept = judge_round(); !kept) return kept.error();
    }
    if (context.cancelled()) return cancelled_error();
    context.report("refinement: tasks", 0.65);
    device_ = best_.placement.device;
    if (move_tasks())
      if (auto kept = judge_round(); !kept) return kept.error();
    for (int round = 0; round < options_.path_rounds; ++round) {
      if (context.cancelled()) return cancelled_error();
      context.report("refinement: critical path", 0.7 + 0.2 * round / options_.path_rounds);
      device_ = best_.placement.device;
      if (auto measured = judge_.measure(best_.placement); !measured) return measured.error();
      if (!move_along_path(round)) break;
      auto kept = judge_round();
      if (!kept) return kept.error();
      if (!*kept && round % 2 == 1) break;
    }
    return {};
  }

 private:
  /// Whether what device_ says now is better, and so kept.
  Expected<bool> judge_round() {
    Judged next;
    if (options_.order) {
      next.placement = options_.order(device_);
      if (next.placement.device.empty()) return cancelled_error();
    } else {
      next.placement.devices = costs_.devices();
      next.placement.device = device_;
    }
    auto verdict = judge_.measure(next.placement);
    if (!verdict) return verdict.error();
    next.verdict = std::move(*verdict);
    next.origin = best_.origin;
    next.moved = best_.moved;
    if (options_.reorder)
      if (auto done = options_.reorder(next); !done) return done.error();
    // Time decides; what lacks memory is the next step's business, but what fits is not given up for time.
    if (next.verdict.makespan_s >= best_.verdict.makespan_s) return false;
    if (next.verdict.shortage && !best_.verdict.shortage) return false;
    best_ = std::move(next);
    return true;
  }

  bool movable(TaskIndex t) const { return g_.colocate[t] == kNone; }

  std::vector<double> device_times() const {
    std::vector<double> time(costs_.devices(), 0);
    for (TaskIndex t = 0; t < g_.task_count(); ++t) time[device_[t]] += costs_.task_s(t, device_[t]);
    return time;
  }

  /// The one device, another than its own, on which all outside neighbours of the cluster are; kNone if there is none.
  std::uint32_t only_neighbour(const Clusters& clusters, std::uint32_t c) const {
    std::uint32_t other = kNone;
    for (std::uint32_t i = clusters.begin[c]; i < clusters.begin[c + 1]; ++i) {
      const TaskIndex t = clusters.tasks[i];
      if (!movable(t)) return kNone;
      for (const auto neighbours : {g_.predecessors(t), g_.successors(t)})
        for (const TaskIndex n : neighbours) {
          if (clusters.cluster[n] == c) continue;
          if (device_[n] == device_[t] || (other != kNone && other != device_[n])) return kNone;
          other = device_[n];
        }
    }
    return other;
  }

  bool move_clusters(const Clusters& clusters) {
    struct Wish {
      std::uint32_t cluster, from, to;
      double work;
    };
    std::vector<Wish> wishes;
    for (std::uint32_t c = clusters.primaries; c < clusters.size(); ++c) {
      const std::uint32_t to = only_neighbour(clusters, c), from = device_[clusters.tasks[clusters.begin[c]]];
      if (to == kNone) continue;
      double work = 0;
      for (std::uint32_t i = clusters.begin[c]; i < clusters.begin[c + 1]; ++i)
        work += costs_.task_s(clusters.tasks[i]);
      wishes.push_back({c, from, to, work});
    }
    // Heaviest first: they go where that does not raise the higher of the two devices' times, and so, one after the
    // other, are swapped with what wishes to go the other way.
    std::stable_sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) { return a.work > b.work; });
    auto time = device_times();
    bool moved = false;
    for (int pass = 0; pass < 2; ++pass)
      for (Wish& wish : wishes) {
        if (wish.cluster == kNone) continue;
        const double before = std::max(time[wish.from], time[wish.to]);
        if (std::max(time[wish.from] - wish.work, time[wish.to] + wish.work) > before) continue;
        if (only_neighbour(clusters, wish.cluster) != wish.to) continue;
        time[wish.from] -= wish.work;
        time[wish.to] += wish.work;
        for (std::uint32_t i = clusters.begin[wish.cluster]; i < clusters.begin[wish.cluster + 1]; ++i)
          device_[clusters.tasks[i]] = wish.to;
        wish.cluster = kNone;
        moved = true;
      }
    return moved;
  }

  /// Seconds of transfers around a task, if it were on device d.
  double traffic(TaskIndex t, std::uint32_t d) const {
    double sum = 0;
    for (EdgeIndex i = g_.in_begin[t]; i < g_.in_begin[t + 1]; ++i)
      if (device_[g_.in_from[i]] != d) sum += costs_.edge_s(g_.in_edge[i]);
    for (EdgeIndex e = g_.out_begin[t]; e < g_.out_begin[t + 1]; ++e)
      if (device_[g_.out_to[e]] != d) sum += costs_.edge_s(e);
    return sum;
  }

  std::uint32_t common_device(std::span<const TaskIndex> tasks) const {
    if (tasks.empty()) return kNone;
    for (const TaskIndex t : tasks)
      if (device_[t] != device_[tasks.front()]) return kNone;
    return device_[tasks.front()];
  }

  /// Tasks whose consumers, or producers, are all on one other device go there if that saves more transfers than it
  /// makes, plus their own time.
  bool move_tasks() {
    bool moved = false;
    for (const TaskIndex t : g_.topological) {
      if (!movable(t)) continue;
      for (const std::uint32_t to : {common_device(g_.successors(t)), common_device(g_.predecessors(t))}) {
        if (to == kNone || to == device_[t]) continue;
        if (traffic(t, device_[t]) <= traffic(t, to) + costs_.task_s(t)) continue;
        device_[t] = to;
        moved = true;
        break;
      }
    }
    return moved;
  }

  /// Transfers on the critical path: one end of each goes to the other's device, if its own device's neighbours allow.
  /// Even rounds move the consumer, odd rounds the producer.
  bool move_along_path(int round) {
    const Simulation& simulation = judge_.simulation();
    const auto path = critical_path(g_, best_.placement, simulation);
    bool moved = false;
    for (std::size_t i = 1; i + 1 < path.size(); ++i) {
      if (!path[i].is_transfer || path[i - 1].is_transfer || path[i + 1].is_transfer) continue;
      const TaskIndex from = path[i - 1].index, to = path[i + 1].index;
      const TaskIndex mover = round % 2 == 0 ? to : from;
      const std::uint32_t goal = device_[round % 2 == 0 ? from : to];
      if (!movable(mover) || goal == device_[mover]) continue;
      if (traffic(mover, goal) > traffic(mover, device_[mover]) + costs_.task_s(mover)) continue;
      device_[mover] = goal;
      moved = true;
    }
    return moved;
  }

  const ScheduleCosts& costs_;
  const TaskGraph& g_;
  placement::Judge& judge_;
  const RefinementOptions& options_;
  Judged& best_;
  std::vector<std::uint32_t> device_;
};

}  // namespace

SimulatedPlacement answer_of(Judged&& judged, std::vector<PlacementStage>&& stages) {
  SimulatedPlacement result;
  result.placement = std::move(judged.placement);
  result.stages = std::move(stages);
  result.moved_tasks = judged.moved;
  result.origin = std::move(judged.origin);
  return result;
}

Expected<void> refine(const ScheduleCosts& costs, const Clusters* clusters, placement::Judge& judge,
                      const RefinementOptions& options, Judged& candidate, const RunContext& context) {
  return Refiner(costs, judge, options, candidate).run(clusters, context);
}

}  // namespace turnpoint::pardnn
