// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/pardnn.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>

#include "core/base/parallel.h"
#include "core/search/annealing/annealing_methods.h"
#include "core/search/pardnn/memory.h"
#include "core/search/pardnn/ready_order.h"
#include "core/search/pardnn/refinement.h"
#include "core/search/placement/max_load.h"
#include "core/search/placement/memory_bound.h"
#include "core/search/placement/sequence.h"
#include "core/search/placement/simple_methods.h"
#include "core/search/placement/time_bound.h"

namespace turnpoint::pardnn {
namespace {

using placement::Judge;
using placement::ListOptions;
using placement::Objective;
using placement::PlacementRequest;
using placement::ScheduleCosts;

/// Clusters are sliced again and again, once per device: worth it up to so many tasks times devices.
constexpr double kMostSlicing = 4e6;
/// All of the printed algorithm as one seed, and answers on fewer devices: both simulate some ten times more.
constexpr double kMostRepeated = 1e6;

/// Above, there are fewer seeds, and only the fastest is simulated as ready.
constexpr std::size_t kMany = 100000;

bool is_small(const TaskGraph& graph, std::uint32_t devices) {
  return double(graph.task_count()) * devices <= kMostRepeated;
}

bool is_there(const Judged& judged) { return !judged.placement.device.empty(); }

SimulatedPlacement finish(Judged&& judged, std::vector<PlacementStage>&& stages) {
  SimulatedPlacement result;
  result.placement = std::move(judged.placement);
  result.stages = std::move(stages);
  result.moved_tasks = judged.moved;
  result.origin = std::move(judged.origin);
  return result;
}

Expected<Judged> judge_devices(Judge& judge, std::uint32_t devices, std::vector<std::uint32_t> device) {
  Judged judged;
  judged.placement.devices = devices;
  judged.placement.device = std::move(device);
  auto verdict = judge.measure(judged.placement);
  if (!verdict) return verdict.error();
  judged.verdict = std::move(*verdict);
  return judged;
}

/// `beat`: see MemoryOptions.
Expected<SimulatedPlacement> run_printed(const TaskGraph& graph, const PlacementRequest& request, std::int64_t beat,
                                         const RunContext& context) {
  if (graph.task_count() == 0 || request.devices == 1) return placement::run_single_device(graph, request, context);
  const ScheduleCosts costs(graph, request.devices);
  const Clusters clusters = slice(costs, context);
  if (context.cancelled()) return cancelled_error();
  Judge judge(graph, request);
  Judged best, fitting;
  std::vector<PlacementStage> stages;
  // Once a mapping is there, who stops the search keeps it. Memory is the business of the last step, so that a slower
  // mapping may be the one that fits.
  const auto stopped = [&](const char* stage) {
    if (fitting.verdict.better_than(best.verdict, Objective::makespan)) best = std::move(fitting);
    stages.push_back({stage + std::string(placement::kStoppedEarly), best.verdict.makespan_s});
    best.placement.cluster = clusters.cluster;
    return finish(std::move(best), std::move(stages));
  };
  for (const Mapping mapping : {Mapping::level_aware, Mapping::dominated, Mapping::guided}) {
    auto device = map_clusters(costs, clusters, mapping, context);
    if (context.cancelled())
      return is_there(best) ? stopped("mapped") : Expected<SimulatedPlacement>(cancelled_error());
    auto judged = judge_devices(judge, request.devices, std::move(device));
    if (!judged) return judged.error();
    judged->origin = mapping == Mapping::level_aware ? "clusters mapped by level"
                     : mapping == Mapping::dominated ? "clusters mapped as released"
                                                     : "clusters mapped by start";
    stages.push_back({judged->origin, judged->verdict.makespan_s});
    if (!is_there(fitting) || judged->verdict.better_than(fitting.verdict, Objective::makespan)) fitting = *judged;
    if (!is_there(best) || judged->verdict.makespan_s < best.verdict.makespan_s) best = std::move(*judged);
  }
  RefinementOptions options;
  options.path_rounds = int(std::min<std::uint32_t>(request.devices, 64)) + 1;
  // Refinement is about time; what lacks memory is the next step's business.
  auto done = refine(costs, &clusters, judge, options, best, context);
  if (context.cancelled()) return stopped("refined");
  if (!done) return done.error();
  stages.push_back({"refined", best.verdict.makespan_s});
  // Memory has to be tracked under a fixed order, or moves would reshuffle everything.
  if (auto measured = judge.measure(best.placement); !measured) return measured.error();
  judge.keep_order(best.placement);
  MemoryOptions memory;
  memory.beat = beat;
  done = fit_memory(costs, judge, request, memory, best, context);
  if (context.cancelled()) return stopped("memory");
  if (!done) return done.error();
  if (request.limited(graph)) stages.push_back({"memory", best.verdict.makespan_s});
  best.placement.cluster = clusters.cluster;
  return finish(std::move(best), std::move(stages));
}

Expected<SimulatedPlacement> run_published(const TaskGraph& graph, const PlacementRequest& request,
                                           const RunContext& context) {
  return run_printed(graph, request, kUnlimitedBytes, context);
}

struct Seeded {
  Placement placement;
  std::size_t moved = 0;  ///< tasks that a memory stage of its own put elsewhere
};

/// The ways to a first placement. Each is computed on its own, so that threads change nothing.
class Seeds {
 public:
  Seeds(const ScheduleCosts& costs, const PlacementRequest& request, std::int64_t beat)
      : costs_(costs),
        graph_(costs.graph()),
        request_(request),
        order_(placement::order_by_priority(costs, placement::bottom_levels(costs, 1.0))) {
    for (std::uint32_t d = 0; d < request.devices; ++d) room_.push_back(request.limit_of(graph_, d));
    limited_ = request.limited(graph_);
    const bool large = double(graph_.task_count()) * request.devices > kMostSlicing;
    add("one device",
        [this](const RunContext& c) { return devices_of(placement::run_single_device(graph_, request_, c)); });
    const bool contention = graph_.links.contention == TaskLinks::Contention::sender;
    const bool many = graph_.task_count() > kMany;
    for (const double affinity : {0.0, 0.05, 0.3}) {
      if (many && (affinity == 0.3 || (contention && affinity > 0))) continue;
      add(affinity == 0 ? "list schedule" : fmt::format("list schedule, transfers weigh {}", affinity),
          [this, affinity](const RunContext& c) { return Seeded{list(affinity, nullptr, true, c)}; });
    }
    if (!many && graph_.groups.size() > 0)
      add("list schedule, weights before their readers",
          [this](const RunContext& c) { return Seeded{list(0, nullptr, true, c, false)}; });
    if (contention)
      for (const double affinity : {1.0, 4.0}) {
        if (many && affinity == 1) continue;
        add(fmt::format("list schedule, transfers weigh {}", affinity),
            [this, affinity](const RunContext& c) { return Seeded{list(affinity, nullptr, true, c)}; });
      }
    if (!large) add("ParDNN's clusters in a list schedule", [this](const RunContext& c) { return Seeded{mapped(c)}; });
    if (is_small(graph_, request.devices) && (!limited_ || placement::never_fits(graph_, request).empty()))
      add("ParDNN as printed",
          [this, beat](const RunContext& c) { return devices_of(run_printed(graph_, request_, beat, c)); });
    add("layers",
        [this](const RunContext& c) { return devices_of(placement::run_layered_expert(graph_, request_, c)); });
    if (graph_.task_count() <= 20000)
      add("contiguous stages",
          [this](const RunContext& c) { return devices_of(placement::run_pipedream(graph_, request_, c)); });
  }

  std::size_t size() const { return seeds_.size(); }
  const std::string& name(std::size_t i) const { return seeds_[i].name; }
  Seeded make(std::size_t i, const RunContext& context) const { return seeds_[i].make(context); }

  /// By task, once all are made; empty where slicing would have taken too long.
  const std::vector<std::uint32_t>& cluster() const { return cluster_; }
  /// Our own order for given devices. Empty if cancelled.
  Placement ordered(const std::vector<std::uint32_t>& device, const RunContext& context) const {
    return list(0, &device, false, context);
  }

 private:
  struct Seed {
    std::string name;
    std::function<Seeded(const RunContext&)> make;
  };
  void add(std::string name, std::function<Seeded(const RunContext&)> make) {
    seeds_.push_back({std::move(name), std::move(make)});
  }

  static Seeded devices_of(Expected<SimulatedPlacement> result) {
    return result ? Seeded{std::move(result->placement), result->moved_tasks} : Seeded{};
  }
  Placement list(double affinity, const std::vector<std::uint32_t>* fixed, bool with_room, const RunContext& context,
                 bool sources_follow = true) const {
    ListOptions options;
    options.affinity = affinity;
    options.insertion = true;
    options.sources_follow = sources_follow;
    options.fixed = fixed;
    if (limited_ && with_room) options.room = &room_;
    return placement::list_schedule(costs_, order_, options, context).placement;
  }
  Placement mapped(const RunContext& context) const {
    Clusters clusters = slice(costs_, context);
    const auto device = map_clusters(costs_, clusters, Mapping::level_aware, context);
    if (context.cancelled()) return {};
    cluster_ = std::move(clusters.cluster);
    return list(0, &device, false, context);
  }

  const ScheduleCosts& costs_;
  const TaskGraph& graph_;
  const PlacementRequest& request_;
  std::vector<TaskIndex> order_;
  std::vector<std::int64_t> room_;
  bool limited_ = false;
  std::vector<Seed> seeds_;
  mutable std::vector<std::uint32_t> cluster_;  // of the one seed that makes them
};

/// Runs and measures all seeds; the first error, or all that came out: where it is stopped, those that were measured
/// until then, the others without a placement. Error: cancelled, where none was.
Expected<std::vector<Judged>> judge_seeds(const Seeds& seeds, const ScheduleCosts& costs,
                                          const PlacementRequest& request, const RunContext& context) {
  const TaskGraph& graph = costs.graph();
  std::vector<Judged> judged(seeds.size());
  std::vector<std::optional<Error>> errors(seeds.size());
  ThreadPool pool(context.threads);
  RunContext inner = context;
  inner.progress = nullptr;
  context.report("slicing, mapping and list schedules", 0.05);
  pool.for_each(seeds.size(), [&](std::size_t i, int) {
    if (context.cancelled()) return;
    Seeded made = seeds.make(i, inner);
    if (context.cancelled()) return;
    Judge judge(graph, request);
    auto verdict = judge.measure(made.placement);
    if (!verdict) {
      errors[i] = verdict.error();
      return;
    }
    judged[i].placement = std::move(made.placement);
    judged[i].moved = made.moved;
    judged[i].verdict = std::move(*verdict);
    judged[i].origin = seeds.name(i);
    if (judged[i].placement.order.empty()) judge.keep_order(judged[i].placement);
    if (graph.task_count() > kMany) return;
    if (auto done = run_as_ready(costs, judge, Ways::both, judged[i]); !done) errors[i] = done.error();
  });
  for (const auto& error : errors)
    if (error) return *error;
  const bool any = std::any_of(judged.begin(), judged.end(), is_there);
  return any || !context.cancelled() ? Expected<std::vector<Judged>>(std::move(judged)) : cancelled_error();
}

/// Those that were measured, what fits and is fast first.
std::vector<const Judged*> by_preference(const std::vector<Judged>& seeds) {
  std::vector<const Judged*> list;
  for (const Judged& seed : seeds)
    if (is_there(seed)) list.push_back(&seed);
  std::stable_sort(list.begin(), list.end(), [](const Judged* a, const Judged* b) {
    return a->verdict.better_than(b->verdict, Objective::makespan);
  });
  return list;
}

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

/// `beat`: the missing bytes of what the answer competes with.
Expected<SimulatedPlacement> search(const TaskGraph& graph, const PlacementRequest& request, std::int64_t beat,
                                    const RunContext& context);

/// The answer on the first devices alone, as many as the largest power of two below, the others idle: the search on
/// more devices has worse luck now and then. False: it is not better.
Expected<bool> take_from_fewer(Judge& judge, const PlacementRequest& request, const TaskGraph& graph, Judged& best,
                               std::int64_t beat, std::vector<PlacementStage>& stages, const RunContext& context) {
  PlacementRequest half = request;
  for (half.devices = 2; half.devices * 2 < request.devices;) half.devices *= 2;
  if (!best.verdict.shortage && placement::least_makespan_s(graph, half.devices) >= best.verdict.makespan_s)
    return false;
  RunContext inner = context;
  inner.progress = nullptr;
  // What is annealed may come to fit in the end; in larger graphs looking for memory in vain takes too long for that.
  constexpr std::size_t kLookedThrough = 5000;
  const bool annealed = graph.task_count() <= kLookedThrough && annealing::stage_calls(graph) > 0;
  auto fewer = search(graph, half, annealed ? kUnlimitedBytes : std::min(beat, best.verdict.missing_bytes), inner);
  if (!fewer) return fewer.error();
  Judged other;
  other.placement = std::move(fewer->placement);
  other.placement.devices = request.devices;
  if (!other.placement.order.empty()) other.placement.order.resize(request.devices);
  auto verdict = judge.measure(other.placement);
  if (!verdict) return verdict.error();
  if (other.placement.order.empty()) judge.keep_order(other.placement);
  other.verdict = std::move(*verdict);
  if (!other.verdict.better_than(best.verdict, Objective::makespan)) return false;
  const bool told = fewer->origin.starts_with("the answer on");
  other.origin =
      told ? fewer->origin : fmt::format("the answer on {} devices, which began as {}", half.devices, fewer->origin);
  other.moved = fewer->moved_tasks;
  best = std::move(other);
  stages.push_back({best.origin, best.verdict.makespan_s});
  return true;
}

/// What a search goes by and what it has so far.
struct Search {
  const TaskGraph& graph;
  const PlacementRequest& request;
  std::int64_t beat;
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
};

/// All stages after the seeds. False: the user stopped it.
Expected<bool> improve_seeds(Search& s, const RunContext& context) {
  RefinementOptions refinement;
  refinement.order = [&](const std::vector<std::uint32_t>& device) { return s.seeds.ordered(device, context); };
  refinement.path_rounds = 2;
  const bool many = s.graph.task_count() > kMany;
  if (many) {
    if (auto done = run_as_ready(s.costs, s.judge, Ways::all_transfers, s.best); !done) return done.error();
  } else {
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
    const auto taken = take_from_fewer(s.judge, s.request, s.graph, s.best, s.beat, s.stages, context);
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
                                    const RunContext& context) {
  if (graph.task_count() == 0 || request.devices == 1) return placement::run_single_device(graph, request, context);
  if (request.objective == Objective::max_load) return placement::run_max_load(graph, request, context);
  const ScheduleCosts costs(graph, request.devices);
  const Seeds seeds(costs, request, beat);
  auto judged = judge_seeds(seeds, costs, request, context);
  if (!judged) return judged.error();
  const Judged* fastest = nullptr;
  std::vector<PlacementStage> stages;
  for (const Judged& seed : *judged) {
    if (!is_there(seed)) continue;
    stages.push_back({seed.origin, seed.verdict.makespan_s});
    if (!fastest || seed.verdict.makespan_s < fastest->verdict.makespan_s) fastest = &seed;
  }
  Judge judge(graph, request);
  Search s{graph, request, beat, costs, seeds, *judged, judge, *fastest, std::move(stages)};
  auto whole = context.cancelled() ? s.ended("first placements", {}, context) : improve_seeds(s, context);
  if (!whole) return whole.error();
  if (!*whole) {
    // Memory is the business of a stage that has not come, so that a slower seed may be the one that fits.
    for (const Judged& seed : *judged)
      if (is_there(seed) && seed.verdict.better_than(s.best.verdict, Objective::makespan)) s.best = seed;
    s.stages.back().name += placement::kStoppedEarly;
    s.stages.back().makespan_s = s.best.verdict.makespan_s;
  }
  s.best.placement.cluster = seeds.cluster();  // also where it began as something else
  return finish(std::move(s.best), std::move(s.stages));
}

Expected<SimulatedPlacement> run_pardnn(const TaskGraph& graph, const PlacementRequest& request,
                                        const RunContext& context) {
  return search(graph, request, kUnlimitedBytes, context);
}

}  // namespace

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

placement::PlacementMethod published_method() {
  return {
      .name = "pardnn-published",
      .title = "ParDNN as printed",
      .paper = "ParDNN: automatically partitioning the operations of a deep-learning model",
      .description = "Slicing, mapping and refinement as the paper has them; devices run tasks as they become ready",
      .for_comparison = true,
      .frontier = true,
      .run = &run_published,
  };
}

}  // namespace turnpoint::pardnn
