// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/seeds.h"

#include <fmt/format.h>
#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/parallel.h"
#include "core/search/pardnn/clusters.h"
#include "core/search/pardnn/printed.h"
#include "core/search/pardnn/ready_order.h"
#include "core/search/placement/memory_bound.h"
#include "core/search/placement/sequence.h"
#include "core/search/placement/simple_methods.h"

namespace turnpoint::pardnn {

using placement::ListOptions;
using placement::PlacementRequest;

namespace {

/// Clusters are sliced again and again, once per device: worth it up to so many tasks times devices.
constexpr double kMostSlicing = 4e6;
constexpr double kMostRepeated = 1e6;
/// Contiguous stages are a search of their own.
constexpr std::size_t kMostStaged = 20000;

Seeded devices_of(Expected<SimulatedPlacement> result) {
  return result ? Seeded{std::move(result->placement), result->moved_tasks} : Seeded{};
}

}  // namespace

bool is_small(const TaskGraph& graph, std::uint32_t devices) {
  return double(graph.task_count()) * devices <= kMostRepeated;
}

Seeds::Seeds(const ScheduleCosts& costs, const PlacementRequest& request, std::int64_t beat)
    : costs_(costs),
      graph_(costs.graph()),
      request_(request),
      order_(placement::order_by_priority(costs, placement::bottom_levels(costs, 1.0))) {
  for (std::uint32_t d = 0; d < request.devices; ++d) room_.push_back(request.limit_of(graph_, d));
  limited_ = request.limited(graph_);
  add("one device",
      [this](const RunContext& c) { return devices_of(placement::run_single_device(graph_, request_, c)); });
  add_lists(graph_.task_count() > kMany);
  if (double(graph_.task_count()) * request.devices <= kMostSlicing)
    add("ParDNN's clusters in a list schedule", [this](const RunContext& c) { return Seeded{mapped(c)}; });
  if (is_small(graph_, request.devices) && (!limited_ || placement::never_fits(graph_, request).empty()))
    add("ParDNN as printed",
        [this, beat](const RunContext& c) { return devices_of(run_printed(graph_, request_, beat, c)); });
  add("layers", [this](const RunContext& c) { return devices_of(placement::run_layered_expert(graph_, request_, c)); });
  if (graph_.task_count() <= kMostStaged)
    add("contiguous stages",
        [this](const RunContext& c) { return devices_of(placement::run_pipedream(graph_, request_, c)); });
}

void Seeds::add_list(std::string name, double affinity, bool sources_follow) {
  add(std::move(name), [this, affinity, sources_follow](const RunContext& c) {
    return Seeded{list(affinity, nullptr, true, c, sources_follow)};
  });
}

void Seeds::add_lists(bool many) {
  const bool contention = graph_.links.contention == TaskLinks::Contention::sender;
  const auto name = [](double affinity) { return fmt::format("list schedule, transfers weigh {}", affinity); };
  add_list("list schedule", 0);
  for (const double affinity : {0.05, 0.3})
    if (!many || (affinity == 0.05 && !contention)) add_list(name(affinity), affinity);
  if (!many && graph_.groups.size() > 0) add_list("list schedule, weights before their readers", 0, false);
  if (!contention) return;
  for (const double affinity : {1.0, 4.0})
    if (!many || affinity == 4) add_list(name(affinity), affinity);
}

Placement Seeds::ordered(const std::vector<std::uint32_t>& device, const RunContext& context) const {
  return list(0, &device, false, context);
}

Placement Seeds::list(double affinity, const std::vector<std::uint32_t>* fixed, bool with_room,
                      const RunContext& context, bool sources_follow) const {
  ListOptions options;
  options.affinity = affinity;
  options.insertion = true;
  options.sources_follow = sources_follow;
  options.fixed = fixed;
  if (limited_ && with_room) options.room = &room_;
  return placement::list_schedule(costs_, order_, options, context).placement;
}

Placement Seeds::mapped(const RunContext& context) const {
  Clusters clusters = slice(costs_, context);
  const auto device = map_clusters(costs_, clusters, Mapping::level_aware, context);
  if (context.cancelled()) return {};
  cluster_ = std::move(clusters.cluster);
  return list(0, &device, false, context);
}

Expected<std::vector<Judged>> judge_seeds(const Seeds& seeds, const ScheduleCosts& costs,
                                          const PlacementRequest& request, Orders orders, const RunContext& context) {
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
    placement::Judge judge(graph, request);
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
    if (graph.task_count() > kMany || orders == Orders::listed) return;
    if (auto done = run_as_ready(costs, judge, Ways::both, judged[i]); !done) errors[i] = done.error();
  });
  for (const auto& error : errors)
    if (error) return *error;
  const bool any = std::any_of(judged.begin(), judged.end(), [](const Judged& one) { return one.is_there(); });
  return any || !context.cancelled() ? Expected<std::vector<Judged>>(std::move(judged)) : cancelled_error();
}

std::vector<const Judged*> by_preference(const std::vector<Judged>& seeds) {
  std::vector<const Judged*> list;
  for (const Judged& seed : seeds)
    if (seed.is_there()) list.push_back(&seed);
  std::stable_sort(list.begin(), list.end(), [](const Judged* a, const Judged* b) {
    return a->verdict.better_than(b->verdict, placement::Objective::makespan);
  });
  return list;
}

}  // namespace turnpoint::pardnn
