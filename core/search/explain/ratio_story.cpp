// SPDX-License-Identifier: Apache-2.0
#include "core/search/explain/ratio_story.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/text.h"
#include "core/search/explain/told_answer.h"

namespace turnpoint {

namespace {

constexpr std::size_t kMostRuns = 40;  // that sentences list; the document has all
constexpr const char* kTypeWords[] = {"batch (I)", "reduction (II)", "output (III)"};

/// "4 × V100-16GB and A100-80GB", of a part whose devices begin at this place of the plan's order.
std::string devices_of(const Scenario& scenario, const RatioPlan& plan, std::uint32_t part, std::uint32_t first) {
  std::vector<std::pair<std::string, int>> kinds;
  for (std::uint32_t d = first; d < first + plan.parts[part].devices; ++d) {
    const std::string& name = device_of(*scenario.cluster, plan.order[d]).name;
    auto at = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == name; });
    if (at == kinds.end()) at = kinds.insert(kinds.end(), {name, 0});
    ++at->second;
  }
  std::vector<std::string> texts;
  for (const auto& [name, count] : kinds) texts.push_back(count == 1 ? name : fmt::format("{} \u00d7 {}", count, name));
  return fmt::format("{}", fmt::join(texts, " and "));
}

/// The cuts on the way to the first device, outermost first.
std::vector<std::uint32_t> first_way(const RatioPlan& plan) {
  std::vector<std::uint32_t> cuts;
  for (std::uint32_t c = 0; c < plan.cuts.size() && cuts.size() < plan.parts.size(); c = plan.cuts[c].next[0])
    cuts.push_back(c);
  return cuts;
}

bool both_do(const RatioPlan& plan, const RatioPlan::Layer& layer, std::uint32_t cut) {
  return plan.cuts[cut].share[layer.op.index].loop < 0;
}

/// How many layers two plans cut by the same type, over all places at which devices are cut.
class Likeness {
 public:
  /// `other` null: one that cuts all layers by their batch.
  Likeness(const RatioPlan& plan, const RatioPlan* other) : plan_(plan), other_(other) {}

  /// Nothing where the trees are not the same, or the layers.
  std::optional<std::pair<std::int64_t, std::int64_t>> count() {
    if (other_ && (other_->order != plan_.order || other_->layers.size() != plan_.layers.size())) return {};
    for (std::size_t l = 0; other_ && l < plan_.layers.size(); ++l)
      if (other_->layers[l].op != plan_.layers[l].op) return {};
    const std::uint32_t there = other_ ? other_->whole() : 0;
    const auto counted = at(plan_.whole(), 0, there, 0);
    if (!same_tree_) return {};
    return counted;
  }

 private:
  using Counted = std::pair<std::int64_t, std::int64_t>;

  Counted at(std::uint32_t part, std::uint32_t cut, std::uint32_t other_part, std::uint32_t other_cut) {
    same_tree_ = same_tree_ && (!other_ || other_->parts[other_part].devices == plan_.parts[part].devices);
    if (!same_tree_ || plan_.parts[part].devices == 1) return {0, 0};
    if (const auto known = known_.find({cut, other_cut}); known != known_.end()) return known->second;
    Counted sum{0, std::int64_t(plan_.layers.size())};
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const RatioPlan::Layer& layer = plan_.layers[l];
      const bool both = both_do(plan_, layer, cut), there = other_ && both_do(*other_, layer, other_cut);
      const PartitionType type = other_ ? other_->layers[l].type[other_cut] : PartitionType::batch;
      sum.first += both || there ? both == there : layer.type[cut] == type;
    }
    for (std::size_t h = 0; h < 2; ++h) {
      const Counted half =
          at(plan_.parts[part].halves[h], plan_.cuts[cut].next[h], other_ ? other_->parts[other_part].halves[h] : 0,
             other_ ? other_->cuts[other_cut].next[h] : 0);
      sum.first += half.first, sum.second += half.second;
    }
    return known_[{cut, other_cut}] = sum;
  }

  const RatioPlan& plan_;
  const RatioPlan* other_;
  bool same_tree_ = true;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Counted> known_;
};

/// Whether a sharding plan splits each of these layers by its batch, on every axis.
bool all_by_batch(const Model& model, const Plan& plan, const std::vector<RatioPlan::Layer>& layers) {
  if (plan.pipeline || plan.operators.size() != model.operators.size()) return false;
  return std::all_of(layers.begin(), layers.end(), [&](const RatioPlan::Layer& layer) {
    const auto& dims = model.operators[layer.op].dims;
    for (int a = 0; a < plan.mesh.count(); ++a) {
      const int loop = plan.operators[layer.op.index].split.axis[static_cast<std::size_t>(a)];
      if (loop < 0 || dims[static_cast<std::size_t>(loop)].name != DimName::batch) return false;
    }
    return true;
  });
}

std::optional<std::pair<std::int64_t, std::int64_t>> likeness_of(const Model& model, const RatioPlan& plan,
                                                                 const AnyPlan& other) {
  using Counted = std::optional<std::pair<std::int64_t, std::int64_t>>;
  return visit_plan(
      other,
      [&](const Plan& one) -> Counted {
        return one.mesh.devices() == plan.devices() && all_by_batch(model, one, plan.layers)
                   ? Likeness(plan, nullptr).count()
                   : Counted();
      },
      [&](const RatioPlan& one) -> Counted { return Likeness(plan, &one).count(); },
      [](const PlacementPlan&) -> Counted { return {}; });
}

void add_cuts(const Scenario& scenario, RatioStory& story) {
  const RatioPlan& plan = *story.plan;
  for (const std::uint32_t c : first_way(plan)) {
    const RatioPlan::Part& part = plan.parts[plan.cuts[c].part];
    CutStory cut;
    cut.first = devices_of(scenario, plan, part.halves[0], 0);
    cut.second = devices_of(scenario, plan, part.halves[1], plan.parts[part.halves[0]].devices);
    cut.ratio = plan.cuts[c].ratio;
    for (const RatioPlan::Layer& layer : plan.layers)
      ++(both_do(plan, layer, c) ? cut.uncut : cut.types[static_cast<std::size_t>(layer.type[c])]);
    story.cuts.push_back(std::move(cut));
  }
}

void add_layers(const Model& model, RatioStory& story) {
  const RatioPlan& plan = *story.plan;
  const std::vector<std::uint32_t> way = first_way(plan);
  for (const RatioPlan::Layer& layer : plan.layers) {
    LayerRun run;
    run.first = run.last = model.operators[layer.op].name;
    run.layers = 1;
    for (const std::uint32_t c : way)
      run.types.emplace_back(both_do(plan, layer, c) ? "both" : to_string(layer.type[c]));
    if (!story.layers.empty() && story.layers.back().types == run.types)
      story.layers.back().last = run.last, ++story.layers.back().layers;
    else
      story.layers.push_back(std::move(run));
  }
}

void add_nearest(const Result& result, const std::vector<ResultPtr>& others, RatioStory& story) {
  for (const ResultPtr& other : others) {
    if (!other || other->points.empty() || !other->plans) continue;
    const auto counted = likeness_of(*result.scenario->model, *story.plan, other->plans->plan(0));
    if (!counted) continue;
    AlikeResult alike;
    alike.method = other->method + (other->method_options.empty() ? "" : ":" + other->method_options);
    alike.point = other->points.front();
    alike.same = counted->first, alike.all = counted->second;
    const bool nearer = !story.nearest || alike.same > story.nearest->same ||
                        (alike.same == story.nearest->same && alike.point.time_s < story.nearest->point.time_s);
    if (nearer) story.nearest = std::move(alike);
  }
}

template <class Part, class Values>
std::string parts_words(const Values& values) {
  std::vector<std::string> words;
  for (std::size_t p = 0; p < values.size(); ++p)
    if (values[p] > 0) words.push_back(fmt::format("{} {}", to_string(Part(p)), format_seconds(values[p])));
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

std::string percent_of(double part) { return fmt::format("{:.4g} %", 100 * part); }

std::string words_of(const CutStory& cut) {
  std::vector<std::string> types;
  for (std::size_t t = 0; t < cut.types.size(); ++t)
    if (cut.types[t] > 0) types.push_back(fmt::format("{} by {}", cut.types[t], kTypeWords[t]));
  if (cut.uncut > 0) types.push_back(fmt::format("{} done by both halves", cut.uncut));
  return fmt::format("{} to {}, {} to {}; of its layers {}", percent_of(cut.ratio), cut.first,
                     percent_of(1 - cut.ratio), cut.second, fmt::join(types, ", "));
}

std::string summary_of(const RatioStory& story) {
  if (story.cuts.empty()) return "one device does everything.";
  return fmt::format("{} devices cut in two at {} level{}, {} layers.", story.plan->devices(), story.cuts.size(),
                     story.cuts.size() == 1 ? "" : "s", story.plan->layers.size());
}

std::string nearest_words(const RatioStory& story) {
  if (!story.nearest)
    return "No other result of this file, of those with plans, divides the same devices by types: search several such "
           "methods with --plans.";
  const AlikeResult& near = *story.nearest;
  return fmt::format(
      "Nearest of the other results: {}, {} and {}, {}; {} of {} layers, counted at every cut, are of the same "
      "type there.",
      near.method, format_bytes(near.point.memory_bytes), format_seconds(near.point.time_s),
      slower_words(near.point.time_s, story.point.time_s), near.same, near.all);
}

}  // namespace

Expected<RatioStory> ratio_story_of(const Result& result, std::size_t point, const std::vector<ResultPtr>& others) {
  const AnyPlan any = result.plans->plan(point);
  const RatioPlanPtr* plan = std::get_if<RatioPlanPtr>(&any);
  if (!plan)
    return usage_error(fmt::format("the plans of {} are {}, not ratio plans", result.method, plural_of(kind_of(any))));
  RatioStory story;
  story.index = point;
  story.point = result.points[point];
  story.plan = *plan;
  add_cuts(*result.scenario, story);
  add_layers(*result.scenario->model, story);
  add_nearest(result, others, story);
  return story;
}

std::vector<std::string> describe(const RatioStory& story, const Result& result) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("Point {} of {}, {} and {} by plain sums: {}", story.index, result.method,
                              format_bytes(story.point.memory_bytes), format_seconds(story.point.time_s),
                              summary_of(story)));
  for (std::size_t c = 0; c < story.cuts.size(); ++c)
    lines.push_back(fmt::format("  Cut {}: {}.", c + 1, words_of(story.cuts[c])));
  lines.emplace_back("What devices hold:");
  for (const std::string& kind : describe_devices(*result.scenario, *story.plan)) lines.push_back("  " + kind);
  lines.emplace_back("Types of layers, cut by cut on the way to the first device:");
  for (std::size_t r = 0; r < std::min(kMostRuns, story.layers.size()); ++r) {
    const LayerRun& run = story.layers[r];
    const std::string who =
        run.layers == 1 ? run.first : fmt::format("{} to {} ({} layers)", run.first, run.last, run.layers);
    lines.push_back(fmt::format("  {}: {}", who, fmt::join(run.types, ", ")));
  }
  if (story.layers.size() > kMostRuns)
    lines.push_back(fmt::format("  and {} more, which --json lists", story.layers.size() - kMostRuns));
  const CostBreakdown& cost = story.plan->cost;
  lines.push_back(
      fmt::format("Computing takes {}: {}.", format_seconds(cost.compute_s()), parts_words<ComputePart>(cost.compute)));
  lines.push_back(fmt::format("The network takes {}: {}.", format_seconds(cost.network_s()),
                              parts_words<NetworkPart>(cost.network)));
  lines.push_back(nearest_words(story));
  lines.emplace_back(
      "Forced choices, other points and what more memory, faster links or faster devices are worth are told of plans "
      "that split operators alike on all devices alone: the engine that answers searches no others.");
  return lines;
}

nlohmann::json explanation_json(const RatioStory& story, const Result& result) {
  using nlohmann::json;
  json cuts = json::array(), layers = json::array(), compute = json::object(), network = json::object();
  for (const CutStory& cut : story.cuts)
    cuts.push_back({{"first", cut.first},
                    {"second", cut.second},
                    {"ratio", cut.ratio},
                    {"types", {{"I", cut.types[0]}, {"II", cut.types[1]}, {"III", cut.types[2]}}},
                    {"both", cut.uncut}});
  for (const LayerRun& run : story.layers)
    layers.push_back({{"first", run.first}, {"last", run.last}, {"layers", run.layers}, {"types", run.types}});
  const CostBreakdown& cost = story.plan->cost;
  for (std::size_t p = 0; p < cost.compute.size(); ++p)
    compute[std::string(to_string(ComputePart(p)))] = cost.compute[p];
  for (std::size_t p = 0; p < cost.network.size(); ++p)
    network[std::string(to_string(NetworkPart(p)))] = cost.network[p];
  json document = explanation_head(result, story.index, summary_of(story));
  document["cuts"] = std::move(cuts);
  document["layers"] = std::move(layers);
  document["compute_s"] = std::move(compute);
  document["network_s"] = std::move(network);
  if (story.nearest)
    document["nearest"] = {{"method", story.nearest->method},
                           {"memory_bytes", story.nearest->point.memory_bytes},
                           {"time_s", story.nearest->point.time_s},
                           {"slower", story.nearest->point.time_s / story.point.time_s - 1},
                           {"words", fmt::format("{} of {} layers, counted at every cut, are of the same type",
                                                 story.nearest->same, story.nearest->all)},
                           {"same_type", story.nearest->same},
                           {"layers", story.nearest->all}};
  return document;
}

}  // namespace turnpoint
