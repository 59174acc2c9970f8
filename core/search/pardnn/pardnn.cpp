// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/pardnn.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <utility>

#include "core/search/annealing/annealing_methods.h"
#include "core/search/pardnn/memory.h"
#include "core/search/pardnn/ready_order.h"
#include "core/search/pardnn/seeds.h"
#include "core/search/placement/max_load.h"
#include "core/search/placement/memory_bound.h"
#include "core/search/placement/simple_methods.h"
#include "core/search/placement/time_bound.h"

namespace turnpoint::pardnn {
namespace {

using placement::Judge;
using placement::Objective;
using placement::PlacementRequest;

/// What is annealed may come to fit in the end; in graphs of more tasks looking for memory in vain takes too long.
constexpr std::size_t kLookedThrough = 5000;

/// Memory for the fastest seed, then, while nothing fits, for the others by speed; the best of all that there is.
Expected<void> fit_best(const ScheduleCosts& costs, Judge& judge, const PlacementRequest& request,
                        const MemoryOptions& options, const std::vector<Judged>& seeds, Judged& best,
                        const RunContext& context) {
  const Placement first = best.placement;
  if (auto done = fit_memory(costs, judge, request, options, best, context); !done) return done.error();
  int tried = 0;
  std::vector<const Placement*> done{&first};
  for (const Judged* seed : by_preference(seeds)) {
    if (context.cancelled()) return cancelled_error();
    Judged other = *seed;
    // Seeds that are the same placement would come to the same end.
    const bool again = std::any_of(done.begin(), done.end(), [&](const Placement* p) {
      return p->device == seed->placement.device && p->order == seed->placement.order;
    });
    Expected<void> fitted;
    if (best.verdict.shortage && other.verdict.shortage && tried++ < 3 && !again) {
      done.push_back(&seed->placement);
      MemoryOptions better = options;
      better.beat = std::min(better.beat, best.verdict.missing_bytes);
      fitted = fit_memory(costs, judge, request, better, other, context);
    }
    if (other.verdict.better_than(best.verdict, Objective::makespan)) best = std::move(other);
    if (!fitted) return fitted.error();
  }
  return {};
}

/// Answers in listed orders by number of devices, each searched once: a search in both orders wants those of fewer
/// devices again.
using Listed = std::map<std::uint32_t, SimulatedPlacement>;

/// What a search goes by and what it has so far.
struct Search {
  const TaskGraph& graph;
  const PlacementRequest& request;
  std::int64_t beat;  ///< the missing bytes of what the answer competes with
  Orders orders;
  Listed& listed;
  const ScheduleCosts& costs;
  const Seeds& seeds;
  const std::vector<Judged>& judged;
  Judge& judge;
  Judged best;
  std::vector<PlacementStage> stages = {};

  /// After a stage. Where the user stopped it there is the best until then, and false: no other stage follows.
  Expected<bool> ended(const char* stage, const Expected<void>& done, const RunContext& context) {
    if (!done && !(context.cancelled() && done.error().code == ErrorCode::cancelled)) return done.error();
    stages.push_back({stage, best.verdict.makespan_s});
    return !context.cancelled();
  }
  bool is_annealed() const { return graph.task_count() <= kLookedThrough && annealing::stage_calls(graph) > 0; }
  /// The missing bytes that another answer to the same question competes with.
  std::int64_t beaten_by_now() const {
    return is_annealed() ? kUnlimitedBytes : std::min(beat, best.verdict.missing_bytes);
  }
};

/// As ready, and where that does not fit, in listed orders too.
Expected<SimulatedPlacement> search(const TaskGraph& graph, const PlacementRequest& request, std::int64_t beat,
                                    Orders orders, Listed& listed, const RunContext& context);

/// In listed orders alone, or as they were searched before.
Expected<SimulatedPlacement> search_listed(const TaskGraph& graph, const PlacementRequest& request, std::int64_t beat,
                                           Listed& listed, const RunContext& context) {
  if (const auto known = listed.find(request.devices); known != listed.end()) return known->second;
  auto answer = search(graph, request, beat, Orders::listed, listed, context);
  if (answer) listed.emplace(request.devices, *answer);
  return answer;
}

/// Another search's answer, on no more devices, measured here and taken where it is better. False: it is not.
Expected<bool> take(Search& s, SimulatedPlacement answer) {
  Judged other;
  other.placement = std::move(answer.placement);
  other.placement.devices = s.request.devices;
  if (!other.placement.order.empty()) other.placement.order.resize(s.request.devices);
  auto verdict = s.judge.measure(other.placement);
  if (!verdict) return verdict.error();
  if (other.placement.order.empty()) s.judge.keep_order(other.placement);
  other.verdict = std::move(*verdict);
  if (!other.verdict.better_than(s.best.verdict, Objective::makespan)) return false;
  other.origin = std::move(answer.origin);
  other.moved = answer.moved_tasks;
  s.best = std::move(other);
  return true;
}

/// The answer on the first devices alone, as many as the largest power of two below, the others idle: the search on
/// more devices has worse luck now and then. False: it is not better.
Expected<bool> take_from_fewer(Search& s, const RunContext& context) {
  PlacementRequest half = s.request;
  for (half.devices = 2; half.devices * 2 < s.request.devices;) half.devices *= 2;
  if (!s.best.verdict.shortage && placement::least_makespan_s(s.graph, half.devices) >= s.best.verdict.makespan_s)
    return false;
  RunContext inner = context;
  inner.progress = nullptr;
  auto fewer = s.orders == Orders::listed ? search_listed(s.graph, half, s.beaten_by_now(), s.listed, inner)
                                          : search(s.graph, half, s.beaten_by_now(), s.orders, s.listed, inner);
  if (!fewer) return fewer.error();
  if (!fewer->origin.starts_with("the answer on"))
    fewer->origin = fmt::format("the answer on {} devices, which began as {}", half.devices, fewer->origin);
  auto taken = take(s, std::move(*fewer));
  if (taken && *taken) s.stages.push_back({s.best.origin, s.best.verdict.makespan_s});
  return taken;
}

/// Where nothing fits as it becomes ready: the whole search in listed orders, which take less memory. So what fits in
/// these is never missed.
Expected<bool> take_listed(Search& s, const RunContext& context) {
  RunContext inner = context;
  inner.progress = nullptr;
  context.report("listed orders, which take less memory", 0.95);
  const auto listed = search_listed(s.graph, s.request, s.is_annealed() ? s.beat : s.beaten_by_now(), s.listed, inner);
  const auto taken = listed ? take(s, *listed) : Expected<bool>(listed.error());
  return s.ended("listed orders", taken ? Expected<void>() : taken.error(), context);
}

/// All stages after the seeds. False: the user stopped it.
Expected<bool> improve_seeds(Search& s, const RunContext& context) {
  RefinementOptions refinement;
  refinement.order = [&](const std::vector<std::uint32_t>& device) { return s.seeds.ordered(device, context); };
  refinement.path_rounds = 2;
  const bool many = s.graph.task_count() > kMany;
  if (s.orders == Orders::as_ready && many) {
    if (auto done = run_as_ready(s.costs, s.judge, Ways::all_transfers, s.best); !done) return done.error();
  } else if (s.orders == Orders::as_ready) {
    refinement.reorder = [&](Judged& next) { return run_as_ready(s.costs, s.judge, Ways::both, next); };
  }
  auto on = s.ended("refined", refine(s.costs, nullptr, s.judge, refinement, s.best, context), context);
  if (!on || !*on) return on;
  bool hopeless = false;
  if (s.best.verdict.shortage) {
    MemoryOptions memory;
    memory.order = refinement.order;
    memory.beat = s.beat;
    hopeless = !placement::never_fits(s.graph, s.request).empty();
    Expected<void> fitted;
    if (!hopeless) {
      fitted = fit_best(s.costs, s.judge, s.request, memory, s.judged, s.best, context);
    } else {
      // Only so that what is lacking is not more than it need be.
      memory.tries = 2000;
      memory.tries_per_task_and_device = 0;
      fitted = fit_memory(s.costs, s.judge, s.request, memory, s.best, context);
    }
    if (on = s.ended("memory", fitted, context); !on || !*on) return on;
  }
  if (s.request.devices > 2 && !hopeless && is_small(s.graph, s.request.devices)) {
    const auto taken = take_from_fewer(s, context);
    if (context.cancelled() && !(taken && *taken))
      return s.ended("the answer on fewer devices", taken ? Expected<void>() : taken.error(), context);
    if (!taken) return taken.error();
    if (context.cancelled()) return false;
  }
  const std::uint64_t calls = hopeless ? 0 : annealing::stage_calls(s.graph);
  if (calls == 0) return true;
  const std::vector<const Judged*> seeds = by_preference(s.judged);
  std::vector<const Placement*> others;
  for (const Judged* seed : seeds) others.push_back(&seed->placement);
  const auto from =
      annealing::improve(s.costs, s.judge, s.request, calls, others, s.best.placement, s.best.verdict, context);
  if (from && *from > 0) {
    s.best.origin = seeds[*from - 1]->origin;
    s.best.moved = seeds[*from - 1]->moved;
  }
  return s.ended("annealed", from ? Expected<void>() : from.error(), context);
}

Expected<SimulatedPlacement> search(const TaskGraph& graph, const PlacementRequest& request, std::int64_t beat,
                                    Orders orders, Listed& listed, const RunContext& context) {
  if (graph.task_count() == 0 || request.devices == 1) return placement::run_single_device(graph, request, context);
  if (request.objective == Objective::max_load) return placement::run_max_load(graph, request, context);
  const ScheduleCosts costs(graph, request.devices);
  const Seeds seeds(costs, request, beat);
  auto judged = judge_seeds(seeds, costs, request, orders, context);
  if (!judged) return judged.error();
  const Judged* fastest = nullptr;
  std::vector<PlacementStage> stages;
  for (const Judged& seed : *judged) {
    if (!seed.is_there()) continue;
    stages.push_back({seed.origin, seed.verdict.makespan_s});
    if (!fastest || seed.verdict.makespan_s < fastest->verdict.makespan_s) fastest = &seed;
  }
  Judge judge(graph, request);
  Search s{graph, request, beat, orders, listed, costs, seeds, *judged, judge, *fastest, std::move(stages)};
  auto whole = context.cancelled() ? s.ended("first placements", {}, context) : improve_seeds(s, context);
  if (whole && *whole && orders == Orders::as_ready && s.best.verdict.shortage &&
      placement::never_fits(graph, request).empty())
    whole = take_listed(s, context);
  if (!whole) return whole.error();
  if (!*whole) {
    // Memory is the business of a stage that has not come, so that a slower seed may be the one that fits.
    for (const Judged& seed : *judged)
      if (seed.is_there() && seed.verdict.better_than(s.best.verdict, Objective::makespan)) s.best = seed;
    s.stages.back().name += placement::kStoppedEarly;
    s.stages.back().makespan_s = s.best.verdict.makespan_s;
  }
  s.best.placement.cluster = seeds.cluster();  // also where it began as something else
  return answer_of(std::move(s.best), std::move(s.stages));
}

Expected<SimulatedPlacement> run_pardnn(const TaskGraph& graph, const PlacementRequest& request,
                                        const RunContext& context) {
  Listed listed;
  return search(graph, request, kUnlimitedBytes, Orders::as_ready, listed, context);
}

}  // namespace

Expected<SimulatedPlacement> run_in_listed_orders(const TaskGraph& graph, const PlacementRequest& request,
                                                  const RunContext& context) {
  Listed listed;
  return search(graph, request, kUnlimitedBytes, Orders::listed, listed, context);
}

placement::PlacementMethod pardnn_method() {
  return {
      .name = "pardnn",
      .title = "ParDNN",
      .paper = "ParDNN: automatically partitioning the operations of a deep-learning model",
      .description =
          "Slices, maps and refines the graph, seeded by list schedules as well, and anneals what is best; the "
          "simulator "
          "judges every stage",
      .on_by_default = true,
      .default_method = true,
      .frontier = true,
      .run = &run_pardnn,
  };
}

}  // namespace turnpoint::pardnn
