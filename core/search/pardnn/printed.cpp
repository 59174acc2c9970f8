// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/printed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/search/pardnn/memory.h"
#include "core/search/pardnn/pardnn.h"
#include "core/search/placement/simple_methods.h"

namespace turnpoint::pardnn {
namespace {

using placement::Judge;
using placement::Objective;
using placement::PlacementRequest;

Expected<Judged> judge_devices(Judge& judge, std::uint32_t devices, std::vector<std::uint32_t> device) {
  Judged judged;
  judged.placement.devices = devices;
  judged.placement.device = std::move(device);
  auto verdict = judge.measure(judged.placement);
  if (!verdict) return verdict.error();
  judged.verdict = std::move(*verdict);
  return judged;
}

Expected<SimulatedPlacement> run_published(const TaskGraph& graph, const PlacementRequest& request,
                                           const RunContext& context) {
  return run_printed(graph, request, kUnlimitedBytes, context);
}

}  // namespace

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
    return answer_of(std::move(best), std::move(stages));
  };
  for (const Mapping mapping : {Mapping::level_aware, Mapping::dominated, Mapping::guided}) {
    auto device = map_clusters(costs, clusters, mapping, context);
    if (context.cancelled())
      return best.is_there() ? stopped("mapped") : Expected<SimulatedPlacement>(cancelled_error());
    auto judged = judge_devices(judge, request.devices, std::move(device));
    if (!judged) return judged.error();
    judged->origin = mapping == Mapping::level_aware ? "clusters mapped by level"
                     : mapping == Mapping::dominated ? "clusters mapped as released"
                                                     : "clusters mapped by start";
    stages.push_back({judged->origin, judged->verdict.makespan_s});
    if (!fitting.is_there() || judged->verdict.better_than(fitting.verdict, Objective::makespan)) fitting = *judged;
    if (!best.is_there() || judged->verdict.makespan_s < best.verdict.makespan_s) best = std::move(*judged);
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
  return answer_of(std::move(best), std::move(stages));
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
