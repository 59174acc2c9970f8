// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/mesh_tensorflow.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/search/baselines/mesh_layouts.h"
#include "core/search/frontier_tracking/sharding_run.h"

namespace turnpoint::search {

namespace {

// Beyond 16 devices or so a third mesh dimension would bring layouts by the thousand, none of which is in common use.
constexpr int mesh_dims_for(int axes) { return axes <= 4 ? 3 : 2; }
constexpr double kMostLayouts = 300000;

/// A logical dimension's mesh dimension, 0: none.
using Layouting = std::vector<int>;

// The configuration an operator takes; nullopt: this layout is illegal.
std::optional<Configuration> configuration_of(const NamedDims& named, const Operator& op, OperatorId id,
                                              const Mesh& mesh, const MeshDims& dims, const Layouting& layouting) {
  Configuration configuration;
  for (std::size_t l = 0; l < op.dims.size(); ++l) {
    const int c = named.dims.at(id, static_cast<int>(l));
    const int name = c < 0 || op.dims[l].size == 1 ? -1 : named.name_of[static_cast<std::size_t>(c)];
    const int on = name < 0 ? 0 : layouting[static_cast<std::size_t>(name)];
    if (on == 0) continue;
    for (int a = 0; a < mesh.count(); ++a)
      if (dims[static_cast<std::size_t>(on - 1)] >> a & 1u)
        configuration.axis[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(l);
  }
  if (!divides_evenly(op, mesh, configuration) || !splits_at_most_two_dims_per_level(op, mesh, configuration))
    return std::nullopt;
  return configuration;
}

std::vector<int> names_in(const NamedDims& named, const Operator& op, OperatorId id) {
  std::set<int> names;
  for (std::size_t l = 0; l < op.dims.size(); ++l)
    if (const int c = named.dims.at(id, static_cast<int>(l)); c >= 0 && op.dims[l].size > 1)
      if (const int name = named.name_of[static_cast<std::size_t>(c)]; name >= 0) names.insert(name);
  return {names.begin(), names.end()};
}

// Visits every legal way to lay `names` on a mesh of `count` dimensions.
template <class Visit>
void for_each_layout(const NamedDims& named, const std::vector<int>& names, int count, Layouting& layouting,
                     std::size_t next, Visit&& visit) {
  if (next == names.size()) {
    visit();
    return;
  }
  const auto name = static_cast<std::size_t>(names[next]);
  for (int on = 0; on <= count; ++on) {
    bool legal = true;
    for (std::size_t before = 0; on > 0 && before < next && legal; ++before)
      legal = layouting[static_cast<std::size_t>(names[before])] != on ||
              !named.conflicts[name][static_cast<std::size_t>(names[before])];
    if (!legal) continue;
    layouting[name] = on;
    for_each_layout(named, names, count, layouting, next + 1, visit);
  }
  layouting[name] = 0;
}

/// Costs layouts by looking them up in ft's tables; equal operators and tensors are looked up once.
class LayoutCosts {
 public:
  LayoutCosts(const Structure& s, const frontier::Problem& problem, const NamedDims& named,
              const std::vector<MeshDims>& meshes)
      : s_(s), problem_(problem), named_(named), meshes_(meshes) {
    for (std::size_t v = 0; v < s_.variables.size(); ++v)
      if (s_.variables[v].choices) add_operator(v);
    std::map<std::uint32_t, std::vector<std::size_t>> hubs;
    for (std::size_t p = 0; p < s_.pairs.size(); ++p) {
      const auto hub_of = [&](std::uint32_t v) { return s_.variables[v].states != nullptr; };
      if (hub_of(s_.pairs[p].to))
        hubs[s_.pairs[p].to].push_back(p);
      else if (hub_of(s_.pairs[p].from))
        hubs[s_.pairs[p].from].push_back(p);
      else
        add_group(pair_groups_, p, {p});
    }
    for (const auto& [hub, pairs] : hubs) add_group(hub_groups_, hub, pairs);
  }

  /// nullopt: illegal.
  std::optional<frontier::CostPoint> cost(std::size_t mesh, const Layouting& layouting) {
    frontier::CostPoint total;
    for (auto& group : operators_) {
      const int configuration = look_up(group, mesh, layouting);
      if (configuration < 0) return std::nullopt;
      group.now = static_cast<std::uint32_t>(configuration);
      const auto point = problem_.nodes[group.example].costs[group.now].front();
      total.memory += group.count * point.memory;
      total.time += static_cast<double>(group.count) * point.time;
    }
    const auto now = [&](std::uint32_t v) { return operators_[group_of_.at(v)].now; };
    for (const auto& group : pair_groups_) {
      const auto point = fastest(group.pairs.front(), now);
      total.memory += group.count * point.memory;
      total.time += static_cast<double>(group.count) * point.time;
    }
    for (const auto& group : hub_groups_) {
      const auto point = hub_state(group.hub, group.pairs, now).second;
      total.memory += group.count * point.memory;
      total.time += static_cast<double>(group.count) * point.time;
    }
    return total;
  }

  /// The whole choice behind a legal layout.
  frontier::Point unroll(std::size_t mesh, const Layouting& layouting) {
    frontier::Point point;
    point.configs.assign(s_.variables.size(), 0);
    point.node_alternatives.assign(s_.variables.size(), 0);
    for (auto& group : operators_) group.now = static_cast<std::uint32_t>(look_up(group, mesh, layouting));
    for (const auto& [v, group] : group_of_) point.configs[v] = operators_[group].now;
    const auto now = [&](std::uint32_t v) { return point.configs[v]; };
    std::map<std::uint32_t, std::vector<std::size_t>> hubs;
    for (std::size_t p = 0; p < s_.pairs.size(); ++p) {
      if (s_.variables[s_.pairs[p].to].states) hubs[s_.pairs[p].to].push_back(p);
      if (s_.variables[s_.pairs[p].from].states) hubs[s_.pairs[p].from].push_back(p);
    }
    for (const auto& [hub, pairs] : hubs) point.configs[hub] = hub_state(hub, pairs, now).first;
    for (std::size_t p = 0; p < s_.pairs.size(); ++p) {
      const auto entry = entry_of(p, point.configs[s_.pairs[p].from], point.configs[s_.pairs[p].to]);
      point.edge_alternatives.push_back(static_cast<std::uint16_t>(quickest(entry) - entry.begin()));
    }
    const auto sum = frontier::evaluate(problem_, point);
    point.memory = sum.memory;
    point.time = sum.time;
    return point;
  }

 private:
  struct OperatorGroup {
    std::size_t example = 0;
    std::int64_t count = 0;
    std::vector<int> names;
    std::vector<std::vector<int>> configurations;  ///< [mesh][code of the names' mesh dimensions]
    std::uint32_t now = 0;
  };
  struct PairGroup {
    std::uint32_t hub = 0;
    std::vector<std::size_t> pairs;
    std::int64_t count = 0;
  };

  void add_operator(std::size_t v) {
    const Variable& variable = s_.variables[v];
    const Operator& op = s_.model->operators[variable.op];
    std::vector<int> key{static_cast<int>(variable.cost_group)};
    for (std::size_t l = 0; l < op.dims.size(); ++l) {
      const int c = named_.dims.at(variable.op, static_cast<int>(l));
      key.push_back(c < 0 ? -1 : named_.name_of[static_cast<std::size_t>(c)]);
    }
    const auto [it, fresh] = known_operators_.try_emplace(std::move(key), operators_.size());
    group_of_[static_cast<std::uint32_t>(v)] = it->second;
    if (!fresh) {
      ++operators_[it->second].count;
      return;
    }
    OperatorGroup group;
    group.example = v;
    group.count = 1;
    group.names = names_in(named_, op, variable.op);
    const auto& choices = variable.choices->configurations;
    for (const auto& dims : meshes_) {
      const int radix = static_cast<int>(dims.size()) + 1;
      std::size_t codes = 1;
      for (std::size_t i = 0; i < group.names.size(); ++i) codes *= static_cast<std::size_t>(radix);
      std::vector<int> table(codes, -1);
      Layouting layouting(static_cast<std::size_t>(named_.names), 0);
      for_each_layout(named_, group.names, radix - 1, layouting, 0, [&] {
        const auto wanted = op.kind == OperatorKind::input
                                ? std::optional(data_parallel_configuration(op, s_.mesh))
                                : configuration_of(named_, op, variable.op, s_.mesh, dims, layouting);
        if (!wanted) return;
        const auto at = std::find(choices.begin(), choices.end(), *wanted);
        if (at != choices.end()) table[code(group.names, layouting, radix)] = static_cast<int>(at - choices.begin());
      });
      group.configurations.push_back(std::move(table));
    }
    operators_.push_back(std::move(group));
  }

  static std::size_t code(const std::vector<int>& names, const Layouting& layouting, int radix) {
    std::size_t value = 0;
    for (const int name : names)
      value =
          value * static_cast<std::size_t>(radix) + static_cast<std::size_t>(layouting[static_cast<std::size_t>(name)]);
    return value;
  }
  int look_up(const OperatorGroup& group, std::size_t mesh, const Layouting& layouting) const {
    return group.configurations[mesh][code(group.names, layouting, static_cast<int>(meshes_[mesh].size()) + 1)];
  }

  // Pairs are alike if their tables are and the operators at their ends always take the same configurations.
  void add_group(std::vector<PairGroup>& groups, std::size_t hub, const std::vector<std::size_t>& pairs) {
    std::vector<std::size_t> key{&groups == &hub_groups_};
    for (const std::size_t p : pairs) {
      const auto end = [&](std::uint32_t v) {
        const auto it = group_of_.find(v);
        return it == group_of_.end() ? std::size_t(-1) : it->second;
      };
      key.insert(key.end(), {s_.pairs[p].table, end(s_.pairs[p].from), end(s_.pairs[p].to)});
    }
    const auto [it, fresh] = known_pairs_.try_emplace(std::move(key), groups.size());
    if (fresh) groups.push_back({static_cast<std::uint32_t>(hub), pairs, 0});
    ++groups[it->second].count;
  }

  std::span<const frontier::CostPoint> entry_of(std::size_t p, std::uint32_t from, std::uint32_t to) const {
    const auto& edge = problem_.edges[p];
    return edge.costs[std::size_t(edge.from_class[from]) * edge.columns + edge.to_class[to]];
  }
  static std::span<const frontier::CostPoint>::iterator quickest(std::span<const frontier::CostPoint> entry) {
    return std::min_element(entry.begin(), entry.end(), [](const auto& a, const auto& b) {
      return std::tie(a.time, a.memory) < std::tie(b.time, b.memory);
    });
  }
  template <class Now>
  frontier::CostPoint fastest(std::size_t p, Now&& now) const {
    return *quickest(entry_of(p, now(s_.pairs[p].from), now(s_.pairs[p].to)));
  }

  template <class Now>
  std::pair<std::uint32_t, frontier::CostPoint> hub_state(std::uint32_t hub, const std::vector<std::size_t>& pairs,
                                                          Now&& now) const {
    std::pair<std::uint32_t, frontier::CostPoint> best;
    for (std::uint32_t state = 0; state < s_.variables[hub].size(); ++state) {
      frontier::CostPoint sum;
      for (const std::size_t p : pairs) {
        const Pair& pair = s_.pairs[p];
        const auto point =
            *quickest(entry_of(p, pair.from == hub ? state : now(pair.from), pair.to == hub ? state : now(pair.to)));
        sum.memory += point.memory;
        sum.time += point.time;
      }
      if (state == 0 || std::tie(sum.time, sum.memory) < std::tie(best.second.time, best.second.memory))
        best = {state, sum};
    }
    return best;
  }

  const Structure& s_;
  const frontier::Problem& problem_;
  const NamedDims& named_;
  const std::vector<MeshDims>& meshes_;
  std::map<std::vector<int>, std::size_t> known_operators_;
  std::map<std::vector<std::size_t>, std::size_t> known_pairs_;
  std::vector<OperatorGroup> operators_;
  std::map<std::uint32_t, std::size_t> group_of_;
  std::vector<PairGroup> pair_groups_, hub_groups_;
};

struct Candidate {
  frontier::CostPoint cost;
  std::size_t mesh = 0;
  Layouting layouting;
};

// Keeps a Pareto set, memory rising and time falling.
void keep_if_better(std::map<std::int64_t, Candidate>& kept, Candidate candidate) {
  auto after = kept.upper_bound(candidate.cost.memory);
  if (after != kept.begin() && std::prev(after)->second.cost.time <= candidate.cost.time) return;
  while (after != kept.end() && after->second.cost.time >= candidate.cost.time) after = kept.erase(after);
  kept[candidate.cost.memory] = std::move(candidate);
}

class MeshTensorFlow : public Searcher {
 public:
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const Model& model = *scenario->model;
    const Mesh mesh = make_mesh(*scenario->cluster);
    const auto meshes = enumerate_meshes(mesh, mesh_dims_for(mesh.count()));
    const NamedDims named = name_dims(model, scenario->settings.split_windows, meshes, kMostLayouts);
    SearchSpace space;
    space.memory_choices = false;
    space.only = [&](OperatorId id, const Operator& op, const Mesh& on) {
      if (op.kind == OperatorKind::input) return std::vector<Configuration>{data_parallel_configuration(op, on)};
      std::set<Configuration> found;
      const auto names = names_in(named, op, id);
      for (const auto& dims : meshes) {
        Layouting layouting(static_cast<std::size_t>(named.names), 0);
        for_each_layout(named, names, static_cast<int>(dims.size()), layouting, 0, [&] {
          if (const auto c = configuration_of(named, op, id, on, dims, layouting)) found.insert(*c);
        });
      }
      return std::vector<Configuration>(found.begin(), found.end());
    };
    const auto solve = [&](const Structure& structure, const PricedProblem& priced) {
      return best_layouts(structure, priced.problem, named, meshes, context);
    };
    return run_sharding("mesh-tensorflow", scenario, space, solve, context);
  }

 private:
  // The Pareto-optimal ones of all layoutings of all meshes.
  static Expected<frontier::Answer> best_layouts(const Structure& structure, const frontier::Problem& problem,
                                                 const NamedDims& named, const std::vector<MeshDims>& meshes,
                                                 const RunContext& context) {
    context.report("layouts", 0);
    LayoutCosts costs(structure, problem, named, meshes);
    std::vector<int> names(static_cast<std::size_t>(named.names));
    std::iota(names.begin(), names.end(), 0);
    std::map<std::int64_t, Candidate> kept;
    std::size_t tried = 0;
    bool stopped = false;  // looked at once in a thousand layouts; the rest of the count passes in no time
    for (std::size_t m = 0; m < meshes.size(); ++m) {
      Layouting layouting(names.size(), 0);
      for_each_layout(named, names, static_cast<int>(meshes[m].size()), layouting, 0, [&] {
        if (++tried % 1024 == 0 && context.cancelled()) stopped = true;
        if (stopped) return;
        if (const auto cost = costs.cost(m, layouting)) keep_if_better(kept, {*cost, m, layouting});
      });
    }
    if (stopped || context.cancelled()) return cancelled_error();
    frontier::Answer answer;
    answer.exact = true;
    for (const auto& [memory, candidate] : kept)
      answer.points.push_back(costs.unroll(candidate.mesh, candidate.layouting));
    return answer;
  }
};

}  // namespace

Method mesh_tensorflow_method() {
  return {
      .name = "mesh-tensorflow",
      .title = "Mesh-TensorFlow",
      .paper = "Mesh-TensorFlow, arXiv 1811.02084; as the TensorOpt study simulates it",
      .description = "One mesh for all operators, every logical dimension split alike wherever it occurs",
      .frontier = true,
      .on_by_default = true,
      .make = [] { return std::make_unique<MeshTensorFlow>(); },
  };
}

}  // namespace turnpoint::search
