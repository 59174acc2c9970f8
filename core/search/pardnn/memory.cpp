// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/memory.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

#include "core/search/pardnn/memory_ledger.h"

namespace turnpoint::pardnn {
namespace {

/// Tensors with more readers than this to move are left alone.
constexpr std::size_t kMostTogether = 12;
/// Instants of one device at which nothing helped, after which a round leaves the device.
constexpr int kMostHopeless = 8;

struct Move {
  std::vector<TaskIndex> tasks;
  std::uint32_t from, to;
  double cost;
};

class Fitter {
 public:
  Fitter(const ScheduleCosts& costs, placement::Judge& judge, const placement::PlacementRequest& request,
         const MemoryOptions& options, Judged& candidate)
      : costs_(costs), g_(costs.graph()), judge_(judge), options_(options), best_(candidate) {
    for (std::uint32_t d = 0; d < costs.devices(); ++d) limit_.push_back(request.limit_of(g_, d));
    members_.resize(g_.groups.size());
    for (TaskIndex t = 0; t < g_.task_count(); ++t)
      if (g_.colocate[t] != kNone) members_[g_.colocate[t]].push_back(t);
  }

  /// Where it is stopped the candidate is the best until then.
  Expected<void> run(const RunContext& context) {
    Judged now = best_;
    // The aim is a little below the limit, more so round after round: moves shift times, which no ledger foresees.
    double margin = 0.002;
    int without_gain = 0;
    for (int round = 0; round < options_.rounds && now.verdict.shortage && without_gain < 6 && !exhausted(); ++round) {
      context.report("memory", double(round) / options_.rounds);
      auto moved = one_round(now, margin, context);
      if (!moved) return moved.error();
      if (!*moved) break;
      if (now.verdict.missing_bytes < best_.verdict.missing_bytes || !now.verdict.shortage) {
        best_ = now;
        without_gain = 0;
      } else {
        ++without_gain;
      }
      margin = std::min(0.2, margin * 1.6);
    }
    if (!best_.verdict.shortage) {
      if (auto done = schedule_anew(); !done) return done.error();
      context.report("memory: prune", 0.95);
      if (auto done = prune(context); !done) return done.error();
    }
    return {};
  }

 private:
  /// False if nothing could be moved.
  Expected<bool> one_round(Judged& now, double margin, const RunContext& context) {
    if (auto measured = judge_.measure_memory(now.placement); !measured) return measured.error();
    const Simulation& simulation = judge_.simulation();
    MemoryLedger ledger(g_, now.placement, simulation);
    if (moves_.empty() && in_vain(ledger)) return false;
    std::vector<std::int64_t> aim(limit_);
    for (std::uint32_t d = 0; d < aim.size(); ++d)
      if (aim[d] != kUnlimitedBytes)
        aim[d] = simulation.devices[d].peak_bytes > aim[d] || margin > 0.01
                     ? aim[d] - std::int64_t(double(aim[d]) * margin)
                     : aim[d];
    const std::size_t before = moves_.size();
    for (std::uint32_t d = 0; d < aim.size(); ++d)
      if (simulation.devices[d].peak_bytes > limit_[d])
        if (!relieve(ledger, d, aim, context)) return cancelled_error();
    if (moves_.size() == before) return false;
    Judged next;
    next.placement.devices = costs_.devices();
    next.placement.device = ledger.device();
    placement::order_by_start(costs_, simulation.start_s, simulation.end_s, next.placement);
    auto verdict = judge_.measure(next.placement);
    if (!verdict) return verdict.error();
    next.verdict = std::move(*verdict);
    now = std::move(next);
    return true;
  }

  /// Moves tasks off device d, its fullest instant first. False if cancelled.
  bool relieve(MemoryLedger& ledger, std::uint32_t d, const std::vector<std::int64_t>& aim, const RunContext& context) {
    std::vector<char> hopeless(ledger.buckets(), 0);
    for (int given_up = 0; given_up < kMostHopeless && !exhausted();) {
      std::uint32_t worst = kNone;
      for (std::uint32_t b = 0; b < ledger.buckets(); ++b)
        if (!hopeless[b] && ledger.level(d, b) > aim[d] &&
            (worst == kNone || ledger.level(d, b) > ledger.level(d, worst)))
          worst = b;
      if (worst == kNone) return true;
      if (context.cancelled()) return false;
      relieve_at(ledger, d, worst, aim, context);
      if (ledger.level(d, worst) <= aim[d]) continue;
      hopeless[worst] = 1;
      ++given_up;
    }
    return !context.cancelled();
  }

  struct Candidate {
    double key;
    TaskIndex tensor;
    bool operator<(const Candidate& other) const { return key != other.key ? key > other.key : tensor > other.tensor; }
  };

  /// What all devices lack together is at least what those lack that lack something.
  bool in_vain(const MemoryLedger& ledger) const {
    double lacking = ledger.least_total();
    for (const std::int64_t limit : limit_) lacking -= double(limit);
    return lacking > 0 && lacking >= double(options_.beat);
  }

  /// Bounds the search where nothing can fit, whatever the machine's speed.
  bool exhausted() const {
    const double tasks = double(g_.task_count());
    return effort_ >= 4e5 + 6.0 * tasks ||
           tries_ >= options_.tries + options_.tries_per_task_and_device * tasks * costs_.devices();
  }

  void relieve_at(MemoryLedger& ledger, std::uint32_t d, std::uint32_t bucket, const std::vector<std::int64_t>& aim,
                  const RunContext& context) {
    const double instant = ledger.time_of(bucket) + 1e-12;
    std::vector<Candidate> list;
    collect(ledger, d, instant, list);
    effort_ += double(g_.task_count()) / 16;
    std::vector<Candidate> keyed;
    for (const Candidate& c : list) {
      if (keyed.size() % 1024 == 0 && context.cancelled()) return;
      const double key = key_of(ledger, c.tensor, d, bucket, instant);
      if (key >= 0) keyed.push_back({key, c.tensor});
    }
    std::priority_queue<Candidate> heap(std::less<Candidate>(), std::move(keyed));
    while (ledger.level(d, bucket) > aim[d] && !heap.empty() && !exhausted()) {
      if (context.cancelled()) return;
      const Candidate c = heap.top();
      heap.pop();
      const double key = key_of(ledger, c.tensor, d, bucket, instant);
      if (key < 0) continue;
      if (!heap.empty() && key > heap.top().key * (1 + 1e-12) && key > c.key) {
        heap.push({key, c.tensor});
        continue;
      }
      move(ledger, d, bucket, c.tensor, aim, key, instant);
    }
  }

  /// Tensors that are on device d at the instant, and tasks whose parameters are.
  void collect(const MemoryLedger& ledger, std::uint32_t d, double instant, std::vector<Candidate>& list) const {
    const auto& device = ledger.device();
    const auto& simulation = judge_.simulation();
    for (TaskIndex t = 0; t < g_.task_count(); ++t) {
      bool here = device[t] == d && (g_.persistent_bytes[t] > 0 || simulation.end_s[t] > instant);
      if (!here && simulation.start_s[t] <= instant) {
        const auto life = ledger.life(t, d);
        here = !life.empty() && life.begin <= instant && life.end > instant;
      }
      if (here) list.push_back({0, t});
    }
  }

  /// What has to leave device d so that the tensor is gone from it at the instant; false if that is too much.
  bool together(const MemoryLedger& ledger, TaskIndex tensor, std::uint32_t d, double instant) {
    const auto& device = ledger.device();
    const auto& simulation = judge_.simulation();
    set_.clear();
    const auto add = [&](TaskIndex t) {
      if (std::find(set_.begin(), set_.end(), t) != set_.end()) return true;
      if (g_.colocate[t] == kNone) {
        set_.push_back(t);
      } else {
        const auto& members = members_[g_.colocate[t]];
        set_.insert(set_.end(), members.begin(), members.end());
      }
      return set_.size() <= kMostTogether || (g_.colocate[t] != kNone && set_.size() <= 4096);
    };
    for (const TaskIndex to : g_.successors(tensor))
      if (device[to] == d && simulation.end_s[to] > instant && !add(to)) return false;
    const bool held_by_maker = set_.empty() || simulation.end_s[tensor] > instant || g_.persistent_bytes[tensor] > 0;
    if (device[tensor] == d && held_by_maker && !add(tensor)) return false;
    return !set_.empty();
  }

  /// Work and new traffic per byte freed at the instant; negative if nothing is freed. Leaves the tasks in set_.
  double key_of(MemoryLedger& ledger, TaskIndex tensor, std::uint32_t d, std::uint32_t bucket, double instant) {
    if (!together(ledger, tensor, d, instant)) return -1;
    effort_ += double(set_.size());
    const std::uint32_t elsewhere = d == 0 ? 1 : 0;
    std::int64_t freed = 0;
    for (const auto& change : ledger.changes(set_, elsewhere))
      if (change.device == d && change.begin <= bucket && bucket < change.end) freed -= change.bytes;
    if (freed <= 0) return -1;
    double cost = 1e-9;
    for (const TaskIndex t : set_) cost += costs_.task_s(t) + traffic(ledger, t, d);
    return cost / double(freed);
  }

  /// Seconds of transfers between a task and what stays with its device.
  double traffic(const MemoryLedger& ledger, TaskIndex t, std::uint32_t d) const {
    double sum = 0;
    const auto stays = [&](TaskIndex n) {
      return ledger.device()[n] == d && (set_.size() > 64 || std::find(set_.begin(), set_.end(), n) == set_.end());
    };
    for (EdgeIndex i = g_.in_begin[t]; i < g_.in_begin[t + 1]; ++i)
      if (stays(g_.in_from[i])) sum += costs_.edge_s(g_.in_edge[i]);
    for (EdgeIndex e = g_.out_begin[t]; e < g_.out_begin[t + 1]; ++e)
      if (stays(g_.out_to[e])) sum += costs_.edge_s(e);
    return sum;
  }

  /// To the device with most in common, then the emptiest at that time, on which it fits all the while.
  bool move(MemoryLedger& ledger, std::uint32_t d, std::uint32_t bucket, TaskIndex tensor,
            const std::vector<std::int64_t>& aim, double key, double instant) {
    if (!together(ledger, tensor, d, instant)) return false;
    common_.assign(costs_.devices(), 0);
    for (const TaskIndex t : set_) {
      for (EdgeIndex i = g_.in_begin[t]; i < g_.in_begin[t + 1]; ++i)
        common_[ledger.device()[g_.in_from[i]]] += costs_.edge_s(g_.in_edge[i]);
      for (EdgeIndex e = g_.out_begin[t]; e < g_.out_begin[t + 1]; ++e)
        common_[ledger.device()[g_.out_to[e]]] += costs_.edge_s(e);
    }
    goals_.clear();
    for (std::uint32_t to = 0; to < costs_.devices(); ++to)
      if (to != d) goals_.push_back(to);
    const auto room = [&](std::uint32_t to) { return double(aim[to]) - double(ledger.level(to, bucket)); };
    std::sort(goals_.begin(), goals_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::make_tuple(-common_[a], -room(a), a) < std::make_tuple(-common_[b], -room(b), b);
    });
    const std::vector<TaskIndex> tasks = set_;
    for (const std::uint32_t to : goals_) {
      ++tries_;
      const auto& changes = ledger.changes(tasks, to);
      if (!ledger.fits(changes, aim)) continue;
      ledger.apply(tasks, to, changes);
      moves_.push_back({tasks, d, to, key});
      return true;
    }
    return false;
  }

  Expected<void> schedule_anew() {
    if (!options_.order) return {};
    Judged next;
    next.placement = options_.order(best_.placement.device);
    if (next.placement.device.empty()) return cancelled_error();
    auto verdict = judge_.measure(next.placement);
    if (!verdict) return verdict.error();
    next.verdict = std::move(*verdict);
    if (next.verdict.better_than(best_.verdict, placement::Objective::makespan)) best_ = std::move(next);
    return {};
  }

  /// Takes back what need not have moved, the costliest first, as long as the ledger says that it fits; all of it is
  /// kept only if the simulator agrees and nothing got slower.
  Expected<void> prune(const RunContext& context) {
    auto measured = judge_.measure_memory(best_.placement);
    if (!measured) return measured.error();
    const Simulation& simulation = judge_.simulation();
    MemoryLedger ledger(g_, best_.placement, simulation);
    std::vector<std::size_t> order(moves_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return moves_[a].cost > moves_[b].cost; });
    bool any = false;
    for (const std::size_t i : order) {
      if (context.cancelled()) return cancelled_error();
      const Move& move = moves_[i];
      bool still_there = true;
      for (const TaskIndex t : move.tasks) still_there &= ledger.device()[t] == move.to;
      if (!still_there) continue;
      const auto& changes = ledger.changes(move.tasks, move.from);
      if (!ledger.fits(changes, limit_)) continue;
      ledger.apply(move.tasks, move.from, changes);
      any = true;
    }
    if (!any) return {};
    Judged next;
    next.placement.devices = costs_.devices();
    next.placement.device = ledger.device();
    placement::order_by_start(costs_, simulation.start_s, simulation.end_s, next.placement);
    auto verdict = judge_.measure(next.placement);
    if (!verdict) return verdict.error();
    next.verdict = std::move(*verdict);
    if (!next.verdict.shortage && next.verdict.makespan_s <= best_.verdict.makespan_s) best_ = std::move(next);
    return {};
  }

  const ScheduleCosts& costs_;
  const TaskGraph& g_;
  placement::Judge& judge_;
  const MemoryOptions& options_;
  Judged& best_;
  std::vector<std::int64_t> limit_;
  std::vector<std::vector<TaskIndex>> members_;
  std::vector<Move> moves_;
  std::vector<TaskIndex> set_;
  std::vector<double> common_;
  std::vector<std::uint32_t> goals_;
  double effort_ = 0;  // candidates weighed
  double tries_ = 0;   // goals tried for moves
};

}  // namespace

Expected<void> fit_memory(const ScheduleCosts& costs, placement::Judge& judge,
                          const placement::PlacementRequest& request, const MemoryOptions& options, Judged& candidate,
                          const RunContext& context) {
  if (!candidate.verdict.shortage || costs.devices() < 2) return {};
  const std::string origin = candidate.origin;
  const std::size_t before = candidate.moved;
  const std::vector<std::uint32_t> original = candidate.placement.device;
  auto done = Fitter(costs, judge, request, options, candidate).run(context);
  candidate.origin = origin;
  candidate.moved = before;
  for (std::size_t t = 0; t < original.size(); ++t) candidate.moved += original[t] != candidate.placement.device[t];
  return done;
}

}  // namespace turnpoint::pardnn
