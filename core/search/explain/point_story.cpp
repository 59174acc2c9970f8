// SPDX-License-Identifier: Apache-2.0
#include "core/search/explain/point_story.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/base/options.h"
#include "core/plan/reprice.h"
#include "core/search/registry.h"

namespace turnpoint {

namespace {

/// How much runs again in backward, as a share of forward.
double again_share(const CostBreakdown& cost) {
  const double forward = cost.compute[std::size_t(ComputePart::forward)];
  return forward > 0 ? cost.compute[std::size_t(ComputePart::recompute)] / forward : 0;
}

/// What most weights have.
std::size_t zero_stage(const Resemblance& plan) {
  int most = plan.weighted - plan.zero[1] - plan.zero[2] - plan.zero[3];
  std::size_t stage = 0;
  for (const std::size_t each : {1u, 2u, 3u})
    if (plan.zero[each] > most) most = plan.zero[each], stage = each;
  return stage;
}

/// The parameters of the method of one's own splits, but for how it runs again.
std::vector<double> values_like(const Method& method, const Resemblance& plan) {
  std::vector<double> values;
  for (const OptionRecord& option : method.options) {
    double value = option.default_value;
    if (option.key == "tp") value = static_cast<double>(plan.tensor);
    if (option.key == "cp") value = static_cast<double>(plan.context);
    if (option.key == "ep") value = static_cast<double>(plan.expert);
    if (option.key == "pp") value = plan.stages;
    if (option.key == "vp") value = plan.chunks;
    if (option.key == "micro-batches") value = plan.micro_batches;
    if (option.key == "zero") value = static_cast<double>(zero_stage(plan));
    if (option.key == "shard" && plan.copies[zero_stage(plan)] > 1)
      value = static_cast<double>(plan.shards[zero_stage(plan)]);
    if (option.key == "gather-first") {
      const std::size_t stage = zero_stage(plan);
      value = (stage == 1 || stage == 2) && 2 * plan.gathered_first > plan.zero[stage];
    }
    if (option.key == "schedule") value = plan.forwards_first;
    if (option.key == "reduce-last") value = plan.sums_behind;
    if (option.key == "tp-comm-overlap") value = plan.beside_products;
    if (option.key == "sequence-parallel") value = plan.sequence_parallel && plan.tensor > 1;
    values.push_back(value);
  }
  return values;
}

/// The split of these groups, if it can be.
Expected<void> find_split_like(const Resemblance& resembled, const Result& result, PointStory& story,
                               const RunContext& context) {
  const Method& method = split_method();
  const std::vector<double> like = values_like(method, resembled);
  const auto again = std::ranges::find(method.options, "recompute", &OptionRecord::key);
  const double wanted = again_share(story.plan->cost);
  double nearest = INFINITY;
  for (std::size_t way = 0; way < again->choices.size(); ++way) {
    if (context.cancelled()) return cancelled_error();
    std::vector<double> values = like;
    values[std::size_t(again - method.options.begin())] = static_cast<double>(way);
    const std::string parameters = format_parameters(method.options, values);
    std::string refusal = refusal_of(method, parameters, *result.scenario);
    ResultPtr found;
    if (refusal.empty()) {
      const auto searcher = make_searcher(method, parameters);
      if (!searcher) return searcher.error();
      const auto run = (*searcher)->run(result.scenario, SearchPass::exact, context);
      if (!run && run.error().code == ErrorCode::cancelled) return run.error();
      if (run)
        found = *run;
      else
        refusal = run.error().what;
    }
    if (!found || found->points.empty()) {
      if (story.why_none.empty()) story.why_none = refusal.empty() ? "it has no plan here" : refusal;
      continue;
    }
    const Plan plan = found->plans->sharding(0);
    const double distance = std::abs(again_share(plan.cost) - wanted);
    if (!(distance < nearest)) continue;
    nearest = distance;
    story.nearest =
        NamedStrategy{method.name + (parameters.empty() ? "" : ":") + parameters,
                      describe(resemblance_of(plan, *result.scenario->model)), found->points.front(), found};
  }
  return {};
}

Expected<void> find_nearest(const Result& result, PointStory& story, const RunContext& context) {
  if (auto done = find_split_like(story.resembles, result, story, context); !done) return done;
  const bool in_groups = story.resembles.copies[zero_stage(story.resembles)] > 1;
  if (!story.nearest && (story.resembles.context > 1 || story.resembles.expert > 1 || in_groups)) {
    // Experts, sequences and shards that no split of one's own has so: what it would be without.
    Resemblance plain = story.resembles;
    plain.context = plain.expert = 1;
    plain.copies.fill(1);
    if (auto done = find_split_like(plain, result, story, context); !done) return done;
  }
  if (story.nearest) story.why_none.clear();
  return {};
}

Expected<void> add_worth(const Result& result, PointStory& story) {
  const Cluster& cluster = *result.scenario->cluster;
  const auto add = [&](Worth::Of of, double now, double more, double WhatIf::*factor) -> Expected<void> {
    if (!(now > 0)) return {};
    Scenario better = *result.scenario;
    better.settings.factors.*factor *=
        (now * better.settings.factors.*factor + more) / (now * better.settings.factors.*factor);
    const auto plan = repriced(better, *story.plan);
    if (!plan) return plan.error();
    story.worth.push_back({of, more, plan->cost.time_s()});
    return {};
  };
  if (cluster.devices_per_node > 1)
    if (auto done = add(Worth::Of::intra_bandwidth, cluster.links[kIntraNode].bandwidth, PointStory::kMoreBandwidth,
                        &WhatIf::intra_bandwidth);
        !done)
      return done;
  if (cluster.nodes > 1)
    if (auto done = add(Worth::Of::inter_bandwidth, cluster.links[kInterNode].bandwidth, PointStory::kMoreBandwidth,
                        &WhatIf::inter_bandwidth);
        !done)
      return done;
  return add(Worth::Of::device_speed, cluster.device.peak(result.scenario->settings.precision), PointStory::kMoreSpeed,
             &WhatIf::device_speed);
}

/// What it is alone.
Expected<PointStory> begun_story(const Result& result, std::size_t point) {
  const AnyPlan any = result.plans->plan(point);
  const PlanPtr* plan = std::get_if<PlanPtr>(&any);
  if (!plan)
    return usage_error(fmt::format("plans that split operators are explained; those of {} are {}", result.method,
                                   plural_of(kind_of(any))));
  PointStory story;
  story.index = point;
  story.point = result.points[point];
  story.plan = *plan;
  story.resembles = resemblance_of(**plan, *result.scenario->model);
  return story;
}

}  // namespace

Expected<std::optional<NamedStrategy>> nearest_split(const Result& result, std::size_t point,
                                                     const RunContext& context) {
  auto story = begun_story(result, point);
  if (!story) return story.error();
  if (auto done = find_nearest(result, *story, context); !done) return done.error();
  return std::move(story->nearest);
}

Expected<PointStory> story_of(const Result& result, std::size_t point, const RunContext& context) {
  auto begun = begun_story(result, point);
  if (!begun) return begun.error();
  PointStory& story = *begun;
  if (auto done = find_nearest(result, story, context); !done) return done.error();
  for (std::size_t k = point + 1; k < result.points.size(); ++k)
    if (result.points[k].memory_bytes <= story.point.memory_bytes + PointStory::kMoreMemory) story.with_more_memory = k;
  if (auto done = add_worth(result, story); !done) return done.error();
  return begun;
}

}  // namespace turnpoint
