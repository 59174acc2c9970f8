// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/wide.h"
#include "core/frontier/slopes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/frontier/multipliers.h"

namespace turnpoint::frontier::detail {

namespace {

using States = std::vector<std::vector<std::uint32_t>>;  // per variable: allowed states, empty = all

class WideSolver {
 public:
  WideSolver(const Graph& graph, const SolveOptions& options, ThreadPool& pool, const Control& control,
             Achieved& achieved)
      : graph_(graph),
        options_(options),
        policy_(options.policy),
        pool_(pool),
        control_(control),
        achieved_(achieved) {}

  WideResult run() {
    cut_ = find_cut(graph_, options_.max_table, control_, policy_);
    if (control_.cancelled()) return std::move(result_);
    relaxation_ = relax(graph_, cut_);
    plan_ = eliminate_relaxed(relaxation_.graph, options_.max_table, control_, policy_);
    if (control_.cancelled()) return std::move(result_);
    build_dag(relaxation_.graph, plan_, dag_);
    std::vector<double> memory, time;
    first_weights(dag_, memory, time);
    const bool exact = options_.pass == Pass::exact;
    const std::size_t rounds = exact ? policy_.wide_rounds : policy_.wide_rounds - 1;
    for (std::size_t i = 0; i < rounds && !memory.empty() && (i == 0 || !control_.stopped()); ++i) {
      control_.report("bounds of a wide problem", double(i) / rounds);
      if (!round(memory, time, exact && i + 2 >= rounds)) break;
      memory.clear();
      time.clear();
      if (i == 0)
        choose_weights(achieved_, kLanes, memory, time);
      else
        open_chords(result_.planes, achieved_, kLanes, policy_.gap, memory, time, Distance::of_time);
    }
    return std::move(result_);
  }

 private:
  /// Bounds of sixteen slopes and plans near them; false if there are none.
  bool round(const std::vector<double>& memory, const std::vector<double>& time, bool exact) {
    Multipliers multipliers(graph_, relaxation_, dag_, pool_, control_, policy_, memory, time);
    if (!multipliers.average()) {
      result_.infeasible = multipliers.infeasible();
      return false;
    }
    if (!achieved_.empty() && !multipliers.climb(achieved_)) return false;
    const std::vector<HalfPlane> planes = multipliers.half_planes();
    result_.planes.insert(result_.planes.end(), planes.begin(), planes.end());
    find_plans(multipliers.choices(), exact);
    if (achieved_.empty()) dive();
    return !achieved_.empty();
  }

  /// Among the states that the relaxed plans use, lists too if `exact`; and among all states of what is not cut.
  void find_plans(std::vector<LaneChoice> choices, bool exact) {
    std::stable_sort(choices.begin(), choices.end(), [](const LaneChoice& a, const LaneChoice& b) {
      return a.weight_memory * b.weight_time < b.weight_memory * a.weight_time;
    });
    solve_between(choices, exact);
    std::set<std::vector<std::uint32_t>> assignments;
    for (const LaneChoice& choice : choices) assignments.insert(choice.assignment);
    solve_assignments(assignments);
  }

  /// Of all slopes together where that is narrow enough, else of each half of them.
  void solve_between(std::span<const LaneChoice> choices, bool exact) {
    if (control_.stopped()) return;
    std::map<std::uint32_t, std::set<std::uint32_t>> used;
    for (const LaneChoice& choice : choices)
      for (const auto& [leaf, states] : choice.states) used[leaf].insert(states.begin(), states.end());
    States allowed(graph_.variables.size());
    for (std::size_t v = 0; v < allowed.size(); ++v) {
      const auto& states = used.at(graph_.variables[v].leaf);
      allowed[v].assign(states.begin(), states.end());
    }
    if (solve_restricted(allowed, exact, policy_.wide_terms) || choices.size() == 1) return;
    solve_between(choices.first(choices.size() / 2), exact);
    solve_between(choices.subspan(choices.size() / 2), exact);
  }

  /// All states of what is not cut.
  void solve_assignments(const std::set<std::vector<std::uint32_t>>& assignments) {
    for (const auto& a : assignments) {
      if (control_.stopped()) return;
      States one(graph_.variables.size());
      for (std::size_t k = 0; k < cut_.size(); ++k) one[cut_[k]] = {a[k]};
      solve_restricted(one, false);
    }
  }

  /// False if it is too wide or too much still.
  bool solve_restricted(const States& allowed, bool exact, std::size_t most_terms = ~std::size_t(0)) {
    const Graph part = restrict_states(graph_, allowed);
    const Elimination plan = eliminate(part, options_.max_table, control_.stop(), policy_);
    if (control_.cancelled()) return true;
    if (plan.too_wide || plan.terms > most_terms) return false;
    Engine engine(part, plan, pool_, control_, options_.memory_limit, blocks_, policy_);
    Achieved found;
    if (!engine.closed_hull(found)) return true;
    engine.coarse(found, options_.buckets);
    CostList floor;
    if (exact && !control_.stopped()) engine.exact(found, options_.max_products * policy_.hull_share, floor);
    achieved_.add(std::move(found.points()));
    return true;
  }

  /// Fixes the cut one variable after another, by rising marginal, stepping back where nothing is left.
  void dive() {
    States allowed(graph_.variables.size());
    std::size_t tried = 0;
    dive_from(0, allowed, tried);
  }

  bool dive_from(std::size_t depth, States& allowed, std::size_t& tried) {
    if (depth == cut_.size()) {
      solve_restricted(allowed, false);
      return !achieved_.empty();
    }
    for (const std::uint32_t s : ordered_states(depth, allowed)) {
      if (++tried > policy_.wide_dives || control_.stopped()) return false;
      allowed[cut_[depth]] = {s};
      if (dive_from(depth + 1, allowed, tried)) return true;
    }
    allowed[cut_[depth]].clear();
    return false;
  }

  /// States of a cut variable for which the relaxation, given the earlier choices, still has a plan.
  std::vector<std::uint32_t> ordered_states(std::size_t depth, States allowed) const {
    std::vector<std::pair<double, std::uint32_t>> order;
    for (std::uint32_t s = 0; s < graph_.variables[cut_[depth]].states; ++s) {
      allowed[cut_[depth]] = {s};
      const Relaxation relaxed = relax(restrict_states(graph_, allowed), cut_);
      const Elimination plan = eliminate_relaxed(relaxed.graph, options_.max_table, control_, policy_);
      if (control_.cancelled()) break;
      Dag dag;
      build_dag(relaxed.graph, plan, dag);
      const double bound = scalar_bound(dag, 1, 1);
      if (std::isfinite(bound)) order.push_back({bound, s});
      if (control_.stopped()) break;
    }
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> states;
    for (const auto& [bound, s] : order) states.push_back(s);
    return states;
  }

  const Graph& graph_;
  const SolveOptions& options_;
  const Policy& policy_;
  ThreadPool& pool_;
  const Control& control_;
  Achieved& achieved_;
  std::vector<std::uint32_t> cut_;
  Relaxation relaxation_;
  Elimination plan_;
  Dag dag_;
  std::vector<LaneBlock> blocks_;
  WideResult result_;
};

}  // namespace

WideResult solve_wide(const Graph& graph, const SolveOptions& options, ThreadPool& pool, const Control& control,
                      Achieved& achieved) {
  return WideSolver(graph, options, pool, control, achieved).run();
}

}  // namespace turnpoint::frontier::detail
