// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/plans.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "core/cost/row_alignment.h"
#include "core/plan/iteration_cost.h"
#include "core/search/frontier_tracking/search_mesh.h"

namespace turnpoint::search {

struct FrontierPlans::Known {
  struct Paths {
    ReshardPath there, back, restored;
  };

  /// By table of a pair and the classes of its two ends.
  template <class Make>
  const Paths& paths(std::uint32_t table, std::uint32_t from, std::uint32_t to, const Make& make) {
    return get(paths_, std::uint64_t(from) << 32 | to, table, make);
  }
  /// By variable, configuration and alternative.
  template <class Make>
  const PlanOperator& planned(std::uint32_t variable, std::uint32_t configuration, std::uint32_t alternative,
                              const Make& make) {
    return get(operators_, std::uint64_t(configuration) << 32 | alternative, variable, make);
  }

 private:
  struct Hash {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint32_t>& key) const {
      return std::size_t((key.first ^ (key.first >> 29)) * 0x9E3779B97F4A7C15u + key.second * 0xC2B2AE3D27D4EB4Fu);
    }
  };
  template <class Value>
  using Map = std::unordered_map<std::pair<std::uint64_t, std::uint32_t>, Value, Hash>;

  // Entries never move and are never taken out, so what was returned stays good without the lock.
  template <class Value, class Make>
  const Value& get(Map<Value>& map, std::uint64_t high, std::uint32_t low, const Make& make) {
    {
      const std::shared_lock lock(guard_);
      if (const auto found = map.find({high, low}); found != map.end()) return found->second;
    }
    Value made = make();
    const std::unique_lock lock(guard_);
    return map.try_emplace({high, low}, std::move(made)).first->second;
  }

  std::shared_mutex guard_;
  Map<Paths> paths_;
  Map<PlanOperator> operators_;
};

namespace {

bool runs_again(const LayoutClasses& classes, std::uint32_t state) {
  return !classes.again.empty() && classes.again[classes.of[state]];
}

const Layout& layout_of(const LayoutClasses& classes, std::uint32_t state) {
  return classes.layouts[classes.of[state]];
}

// `second`: a copy after the resharding stands beside one before it.
Keep keep_of(Copy copy, bool second) {
  switch (copy) {
    case Copy::none: return Keep::none;
    case Copy::source:
    case Copy::before: return Keep::before;
    case Copy::after: return second ? Keep::both : Keep::after;
    case Copy::restore: return Keep::after;
    case Copy::again: return Keep::again;
  }
  return Keep::none;
}

template <class Known>
class Unroller {
 public:
  Unroller(const Prices& prices, const frontier::Point& point, Known& known)
      : prices_(prices), s_(prices.structure()), point_(point), known_(known) {}

  Plan run() {
    plan_.mesh = s_.mesh;
    for (std::size_t v = 0; v < s_.variables.size(); ++v) {
      const Variable& variable = s_.variables[v];
      if (!variable.choices) continue;
      plan_.operators.push_back(
          known_.planned(std::uint32_t(v), point_.configs[v], point_.node_alternatives[v], [&] { return planned(v); }));
    }
    for (std::size_t p = 0; p < s_.pairs.size(); ++p) add_pair(p);
    for (const auto& op : plan_.operators) plan_.cost += of_iteration(op, s_.micro_batches);
    for (const auto& reshard : plan_.reshards) plan_.cost += of_iteration(reshard, s_.micro_batches);
    if (s_.micro_batches > 1) go_through_micro_batches();
    return std::move(plan_);
  }

 private:
  void go_through_micro_batches() {
    PlanPipeline& pipeline = plan_.pipeline.emplace();
    pipeline.micro_batches = s_.micro_batches;
    pipeline.stage_memory_bytes = {plan_.cost.memory_bytes()};
    pipeline.layer_of.assign(plan_.operators.size(), -1);
    pipeline.micro_batch = s_.model;
  }

  PlanOperator planned(std::size_t v) const {
    const Variable& variable = s_.variables[v];
    PlanOperator op;
    op.op = variable.op;
    op.split = variable.choices->configurations[point_.configs[v]];
    op.choice = prices_.alternatives(variable, point_.configs[v])[point_.node_alternatives[v]].choice;
    auto cost = prices_.operators().cost(variable.op, op.split, op.choice, true);
    op.cost = cost.breakdown;
    op.parameters = std::move(cost.parameters);
    return op;
  }

  typename Known::Paths paths(const PairTable& table, const Layout& from, const Layout& to) const {
    typename Known::Paths paths;
    paths.there =
        prices_.path(table, pair_starts_at_output(table.kind) ? from : from.without_partial(), to.without_partial());
    if (table.gradient && !gradients_meet(table, from, to))
      paths.back = prices_.path(table, to, from.without_partial());
    if (table.restores) paths.restored = prices_.path(table, to.without_partial(), from.without_partial());
    return paths;
  }

  void add_pair(std::size_t index) {
    const Pair& pair = s_.pairs[index];
    const PairTable& table = s_.tables[pair.table];
    PlanReshard reshard;
    reshard.from = layout_of(*pair.from_classes, point_.configs[pair.from]);
    reshard.to = layout_of(*pair.to_classes, point_.configs[pair.to]);
    const auto& [there, back, restored] = known_.paths(pair.table, pair.from_classes->of[point_.configs[pair.from]],
                                                       pair.to_classes->of[point_.configs[pair.to]],
                                                       [&] { return paths(table, reshard.from, reshard.to); });
    const double again_s = table.again.valid() ? again_seconds(pair) : 0;
    const PairAlternatives found = pair_alternatives(
        table, s_.mesh, reshard.from, reshard.to,
        {there.time_s, back.time_s, restored.time_s, again_s, runs_again(*pair.from_classes, point_.configs[pair.from]),
         runs_again(*pair.to_classes, point_.configs[pair.to])});
    const PairAlternative& taken = found.item[point_.edge_alternatives[index]];

    identify(pair, table, reshard);
    reshard.forward = there.steps;
    if (taken.copy == Copy::before || taken.copy == Copy::again) reshard.repeated = there.steps;
    if (taken.copy == Copy::restore) reshard.restored = restored.steps;
    reshard.gradient = back.steps;
    reshard.keep =
        keep_of(taken.copy, table.before_is_kept || table.producer_reads || table.kind == PairKind::from_shared);
    for (const ReshardRole role : kReshardRoles) add_network(reshard.cost, reshard.steps(role));
    PlanOperator& producer = plan_.operators[reshard.producer.index];
    if (taken.copy == Copy::again && table.again.valid()) producer.choice.recompute = true;
    producer.cost[ComputePart::recompute] += taken.compute;
    // The copy in the producer's own layout counts with the producer.
    producer.cost[MemoryPart::activations] += taken.produced;
    reshard.cost[reshard.keep == Keep::both ? MemoryPart::copies : MemoryPart::activations] +=
        taken.memory - taken.produced;
    const bool moves = std::any_of(kReshardRoles.begin(), kReshardRoles.end(),
                                   [&](ReshardRole role) { return !reshard.steps(role).empty(); });
    if (moves || reshard.from != reshard.to) plan_.reshards.push_back(std::move(reshard));
  }

  double again_seconds(const Pair& pair) const {
    const Variable& producer = s_.variables[pair.from];
    return prices_.operators().forward_s(producer.op, producer.choices->configurations[point_.configs[pair.from]]);
  }

  void identify(const Pair& pair, const PairTable& table, PlanReshard& reshard) const {
    if (table.kind == PairKind::tie) {
      const ParameterTie& tie = s_.uses.ties[pair.flow];
      reshard.tensor = s_.model->operators[tie.owner].inputs[tie.owner_input].tensor;
      reshard.producer = tie.owner;
      reshard.consumer = tie.user;
      return;
    }
    const TensorFlow& flow = s_.uses.flows[pair.flow];
    reshard.tensor = flow.tensor;
    reshard.producer = flow.producer;
    if (table.kind != PairKind::to_shared) reshard.consumer = flow.consumers[pair.consumer].op;
  }

  const Prices& prices_;
  const Structure& s_;
  const frontier::Point& point_;
  Known& known_;
  Plan plan_;
};

}  // namespace

FrontierPlans::FrontierPlans(std::shared_ptr<const Prices> prices, const std::vector<frontier::Point>& points)
    : prices_(std::move(prices)), points_(points), known_(std::make_shared<Known>()) {}

FrontierPlans::~FrontierPlans() {
  discard(std::pair(std::pair(std::move(prices_), std::move(points_)), std::move(known_)));
}

AnyPlan FrontierPlans::plan(std::size_t point) const {
  const frontier::Point choices = points_.at(point);
  return std::make_shared<const Plan>(
      on_full_mesh(Unroller(*prices_, choices, *known_).run(), make_mesh(*prices_->scenario().cluster)));
}

PlanKind FrontierPlans::kind(std::size_t) const {
  return prices_->structure().micro_batches > 1 ? PlanKind::pipeline : PlanKind::sharding;
}

std::size_t FrontierPlans::bytes() const { return points_.bytes(); }

ResultPtr make_result(std::string method, ScenarioPtr scenario, std::shared_ptr<const Prices> prices,
                      const PricedProblem& priced, frontier::Answer answer, double search_s, ThreadPool* pool) {
  const Structure& s = prices->structure();
  auto result = std::make_shared<Result>();
  result->scenario = std::move(scenario);
  result->method = std::move(method);
  result->exact = answer.exact;
  if (answer.certified) result->gap = answer.exact ? 0 : answer.gap;
  result->heuristic_eliminations = answer.heuristic_eliminations;
  result->search_s = search_s;
  result->lower_bound = std::move(answer.lower_bound);
  if (!answer.lines.empty()) result->bounds.push_back({s.micro_batches, std::move(answer.lines)});
  const std::int64_t limit = result->scenario->memory_limit();
  result->points.resize(answer.points.size());
  const auto fill = [&](std::size_t i, int) {
    const auto& point = answer.points[i];
    const double compute = std::min(priced.compute_seconds(s, point), point.time);
    result->points[i] = {point.memory, point.time, compute, point.time - compute, point.memory <= limit};
  };
  if (pool)
    pool->for_each(answer.points.size(), fill, 16);
  else
    for (std::size_t i = 0; i < answer.points.size(); ++i) fill(i, 0);
  find_marks(*result);
  if (auto note = merged_axes_note(*result->scenario->cluster, s.mesh); !note.empty())
    result->notes.push_back(std::move(note));
  if (auto note = unaligned_rows_note(*result->scenario); !note.empty()) result->notes.push_back(std::move(note));
  result->plans = std::make_shared<FrontierPlans>(std::move(prices), answer.points);
  return result;
}

}  // namespace turnpoint::search
