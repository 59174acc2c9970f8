// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/wide.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace turnpoint::frontier::detail {

namespace {

using States = std::vector<std::vector<std::uint32_t>>;  // per variable: allowed states, empty = all

constexpr int kAscentRounds = 12;  // updates of the multipliers per set of slopes
constexpr int kIdleRounds = 3;     // of them without a gain of kLittle: it will not come
constexpr double kLittle = 2e-5, kLonger = 1.5, kShorter = 3;
constexpr std::size_t kAssignments = 8;        // assignments of the cut that are solved per round
constexpr std::size_t kMostTerms = 100000000;  // products of lists over the states that relaxed plans use
constexpr std::size_t kFewTerms = 2000000;     // of the relaxation: then all states of what is not cut, too
constexpr int kDiveLimit = 4000;               // relaxations tried when no assignment was feasible

/// Variables that must be fixed before the rest can be eliminated.
std::vector<std::uint32_t> find_cut(const Graph& graph, std::size_t max_table, const Control& control) {
  States fixed(graph.variables.size());
  std::vector<std::uint32_t> cut;
  for (;;) {
    const Elimination plan = eliminate(restrict_states(graph, fixed), max_table, control.stop());
    if (!plan.too_wide || control.cancelled()) return cut;
    cut.push_back(plan.stuck);
    fixed[plan.stuck] = {0};
  }
}

/// The graph in which every cut variable has one copy per edge end; each copy carries an equal share of the costs.
struct Relaxation {
  /// Copies that look at equal tables (a weight shared by many layers) have their multipliers in common, so that equal
  /// layers stay equal and are computed once.
  struct Copies {
    std::vector<std::uint32_t> first;  ///< per group: one of its copies in `graph`
    std::vector<double> count;         ///< per group
  };
  Graph graph;
  std::vector<Copies> copies;           ///< per cut variable
  std::vector<std::uint32_t> original;  ///< variable of `graph` -> variable of the whole
};

Relaxation relax(const Graph& graph, const std::vector<std::uint32_t>& cut) {
  Relaxation result{graph, {}, {}};
  Graph& g = result.graph;
  for (std::uint32_t v = 0; v < graph.variables.size(); ++v) result.original.push_back(v);
  for (const std::uint32_t w : cut) {
    Relaxation::Copies copies;
    std::size_t ends = 0;
    for (const Factor& f : g.factors) ends += (f.a == w) + (f.b == w);
    const Leaf& whole = *graph.leaves[graph.variables[w].leaf];
    const auto share = static_cast<std::int64_t>(std::max<std::size_t>(1, ends));
    Leaf part;
    part.offsets = whole.offsets;
    for (const std::int64_t m : whole.memory) part.memory.push_back(m / share);
    // Rounded down a little, so that the shares never exceed the whole.
    for (const double t : whole.time) part.time.push_back(t / static_cast<double>(share) * (1 - 1e-15));
    std::uint32_t copy = w;
    std::map<std::tuple<std::uint32_t, bool, std::vector<std::uint32_t>>, std::size_t> groups;
    for (Factor& f : g.factors) {
      if (f.a != w && f.b != w) continue;
      const bool at_a = f.a == w;
      const auto [group, fresh] =
          groups.try_emplace({f.leaf, at_a, at_a ? f.row_of : f.column_of}, copies.first.size());
      if (group->second > 0 || !fresh) {
        copy = static_cast<std::uint32_t>(g.variables.size());
        g.variables.push_back(g.variables[w]);
        result.original.push_back(w);
      }
      g.variables[copy].origin = kNoOrigin;
      if (fresh) {
        // Its own, although equal to that of other groups: it gets its own multipliers.
        g.variables[copy].leaf = static_cast<std::uint32_t>(g.leaves.size());
        g.leaves.push_back(std::make_shared<const Leaf>(part));
        copies.first.push_back(copy);
        copies.count.push_back(1);
      } else {
        g.variables[copy].leaf = g.variables[copies.first[group->second]].leaf;
        copies.count[group->second] += 1;
      }
      (at_a ? f.a : f.b) = copy;
    }
    if (copies.first.empty()) {
      copies.first.push_back(w);
      copies.count.push_back(1);
    }
    result.copies.push_back(std::move(copies));
  }
  return result;
}

/// Copies are summed out into tables over one neighbour, which only a tiny limit can forbid; the relaxation must not
/// fail.
Elimination eliminate_relaxed(const Graph& graph, std::size_t max_table, const Control& control) {
  for (const Variable& v : graph.variables) max_table = std::max<std::size_t>(max_table, v.states);
  for (;; max_table *= 2) {
    Elimination plan = eliminate(graph, max_table, control.stop());
    if (!plan.too_wide || control.cancelled()) return plan;
  }
}

class WideSolver {
 public:
  WideSolver(const Graph& graph, const SolveOptions& options, ThreadPool& pool, const Control& control,
             Achieved& achieved)
      : graph_(graph), options_(options), pool_(pool), control_(control), achieved_(achieved) {}

  WideResult run() {
    cut_ = find_cut(graph_, options_.max_table, control_);
    if (control_.cancelled()) return std::move(result_);
    control_.report("bounds of a wide problem", 0);
    relaxation_ = relax(graph_, cut_);
    plan_ = eliminate_relaxed(relaxation_.graph, options_.max_table, control_);
    if (control_.cancelled()) return std::move(result_);
    build_dag(relaxation_.graph, plan_, dag_);
    std::vector<double> memory, time;
    first_weights(dag_, memory, time);
    const int rounds = options_.pass == Pass::coarse ? 2 : 3;
    ascents_ = kAscentRounds * (rounds + 1);
    for (int round = 0; round < rounds && (round == 0 || !control_.stopped()); ++round) {
      if (round > 0) choose_weights(achieved_, round + 1 < rounds ? kLanes : 2 * kLanes, memory, time);
      for (std::size_t first = 0; first < memory.size() && (round == 0 || !control_.stopped()); first += kLanes)
        if (!ascend(memory, time, first)) return std::move(result_);
      const auto assignments = std::exchange(tried_, {});
      const bool solved = solve_restricted(wanted_states(), round, kMostTerms) && !achieved_.empty();
      if (!solved || plan_.terms <= kFewTerms) solve_assignments(assignments, round);
      if (achieved_.empty()) dive();
      if (achieved_.empty()) return std::move(result_);
    }
    return std::move(result_);
  }

 private:
  /// Improves the lower bound of sixteen slopes; notes the states and the assignments of the cut that they suggest.
  bool ascend(const std::vector<double>& memory, const std::vector<double>& time, std::size_t first) {
    LaneBlock block;
    for (std::size_t l = 0; l < kLanes; ++l) {
      const std::size_t i = std::min(first + l, memory.size() - 1);
      block.weight_memory[l] = memory[i];
      block.weight_time[l] = time[i];
    }
    block.adjust.resize(dag_.tables.size());
    for (const auto& copies : relaxation_.copies)
      for (const std::uint32_t c : copies.first)
        block.adjust[dag_.unique_of[c]].assign(dag_.tables[dag_.unique_of[c]].entries * kLanes, 0);
    // Of every lane the best multipliers, where to go from there, and how far. Many copies that move at once overshoot:
    // then the same again with a shorter step.
    std::vector<std::vector<double>> best_adjust = block.adjust, direction(block.adjust.size());
    Lanes best, step, everything;
    best.fill(-kInfinity);
    step.fill(1);
    everything.fill(kNoLimit);
    int idle = 0;
    for (int i = 0; i < kAscentRounds && idle < kIdleRounds; ++i) {
      control_.report("bounds of a wide problem", std::min(1.0, double(ascended_++) / ascents_));
      if (i > 0) move(block, best_adjust, direction, step);
      if (!block.inside(dag_, control_, &pool_)) {
        result_.infeasible = !control_.cancelled() && i == 0;
        return false;
      }
      std::array<bool, kLanes> better{};
      bool any = false, much = false;
      for (std::size_t l = 0; l < kLanes; ++l) {
        const double bound = block.bound(static_cast<int>(l)),
                     safe = bound - block.margin(static_cast<int>(l), std::abs(bound));
        better[l] = safe > best[l];
        any = any || better[l];
        much = much || safe > best[l] + kLittle * std::abs(bound);
        step[l] = better[l] ? std::min(1.0, step[l] * kLonger) : step[l] / kShorter;
        best[l] = std::max(best[l], safe);
      }
      idle = much ? 0 : idle + 1;
      note_states(block);
      if (!any) continue;
      block.outside(dag_, separate(everything), control_);
      if (control_.cancelled()) return false;
      aim(block, better, best_adjust, direction);
      if (control_.stopped()) break;
    }
    for (std::size_t l = 0; l < kLanes; ++l)
      result_.planes.push_back({block.weight_memory[l], block.weight_time[l], best[l]});
    tried_.insert(chosen_.begin(), chosen_.end());
    return true;
  }

  /// The states that the relaxation's plans on its hull use, of every copy of a variable; of equal layers together, so
  /// that their tables stay one.
  void note_states(const LaneBlock& block) {
    std::vector<Choice> plans(kLanes);
    pool_.for_each(kLanes, [&](std::size_t l, int) { plans[l] = block.trace(dag_, static_cast<int>(l)); });
    for (const Choice& plan : plans)
      for (std::size_t v = 0; v < relaxation_.original.size(); ++v) {
        const auto& offsets = relaxation_.graph.leaves[relaxation_.graph.variables[v].leaf]->offsets;
        const auto entry = std::upper_bound(offsets.begin(), offsets.end(), plan[v]) - offsets.begin() - 1;
        wanted_[graph_.variables[relaxation_.original[v]].leaf].insert(static_cast<std::uint32_t>(entry));
      }
  }
  States wanted_states() const {
    States states(graph_.variables.size());
    for (std::size_t v = 0; v < states.size(); ++v) {
      const auto& wanted = wanted_.at(graph_.variables[v].leaf);
      states[v].assign(wanted.begin(), wanted.end());
    }
    return states;
  }

  /// Where lanes are better than before: keeps their multipliers, aims at equal min-marginals of all copies of a
  /// variable, and notes the best common state.
  void aim(const LaneBlock& block, const std::array<bool, kLanes>& better,
           std::vector<std::vector<double>>& best_adjust, std::vector<std::vector<double>>& direction) {
    chosen_.resize(kLanes);
    for (std::size_t c = 0; c < relaxation_.copies.size(); ++c) {
      const Relaxation::Copies& copies = relaxation_.copies[c];
      std::vector<LaneValues> marginals;
      for (const std::uint32_t v : copies.first) marginals.push_back(block.marginals(dag_.unique_of[v]));
      std::vector<float> sum(marginals[0].size(), 0);
      double count = 0;
      for (std::size_t k = 0; k < marginals.size(); ++k) {
        const auto weight = static_cast<float>(copies.count[k]);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * marginals[k][i];
        count += copies.count[k];
      }
      for (std::size_t k = 0; k < marginals.size(); ++k) {
        const std::uint32_t table = dag_.unique_of[copies.first[k]];
        direction[table].resize(sum.size(), 0);
        for (std::size_t i = 0; i < sum.size(); ++i) {
          if (!better[i % kLanes]) continue;
          best_adjust[table][i] = block.adjust[table][i];
          direction[table][i] = sum[i] < 1e28f ? double(sum[i]) / count - marginals[k][i] : 0;
        }
      }
      for (std::size_t l = 0; l < kLanes; ++l) {
        if (!better[l]) continue;
        std::size_t state = 0;
        for (std::size_t s = 1; s < sum.size() / kLanes; ++s)
          if (sum[s * kLanes + l] < sum[state * kLanes + l]) state = s;
        chosen_[l].resize(relaxation_.copies.size());
        chosen_[l][c] = static_cast<std::uint32_t>(state);
      }
    }
  }

  void move(LaneBlock& block, const std::vector<std::vector<double>>& from,
            const std::vector<std::vector<double>>& direction, const Lanes& step) const {
    for (const auto& copies : relaxation_.copies) {
      for (const std::uint32_t c : copies.first) {
        const std::uint32_t table = dag_.unique_of[c];
        for (std::size_t i = 0; i < from[table].size(); ++i)
          block.adjust[table][i] = from[table][i] + step[i % kLanes] * direction[table][i];
      }
      balance(block, copies);
    }
  }

  /// The multipliers of one state must not add up to more than nothing, whatever rounding did.
  void balance(LaneBlock& block, const Relaxation::Copies& copies) const {
    auto& first = block.adjust[dag_.unique_of[copies.first[0]]];
    for (std::size_t i = 0; i < first.size(); ++i) {
      double others = 0, size = 0;
      for (std::size_t k = 1; k < copies.first.size(); ++k) {
        const double v = block.adjust[dag_.unique_of[copies.first[k]]][i] * copies.count[k];
        others += v;
        size += std::abs(v);
      }
      first[i] = (-others - size * 1e-15 * static_cast<double>(copies.first.size() + 2)) / copies.count[0];
      if (first[i] > 0) first[i] *= 1 - 1e-15;
    }
  }

  void solve_assignments(const std::set<std::vector<std::uint32_t>>& assignments, int round) {
    // All suggested states at once where that is narrow enough, each assignment alone otherwise.
    States together(graph_.variables.size());
    for (const auto& a : assignments)
      for (std::size_t i = 0; i < cut_.size(); ++i) together[cut_[i]].push_back(a[i]);
    for (auto& states : together) {
      std::sort(states.begin(), states.end());
      states.erase(std::unique(states.begin(), states.end()), states.end());
    }
    if (!assignments.empty() && solve_restricted(together, round)) return;
    std::size_t solved = 0, position = 0;
    for (const auto& a : assignments) {
      const std::size_t i = position++;
      if (i * kAssignments / assignments.size() < solved || control_.stopped()) continue;
      ++solved;
      States one(graph_.variables.size());
      for (std::size_t k = 0; k < cut_.size(); ++k) one[cut_[k]] = {a[k]};
      solve_restricted(one, round);
    }
  }

  /// False if it is too wide or too much still.
  bool solve_restricted(const States& allowed, int round, std::size_t most_terms = ~std::size_t(0)) {
    const Graph part = restrict_states(graph_, allowed);
    const Elimination plan = eliminate(part, options_.max_table, control_.stop());
    if (control_.cancelled()) return true;
    if (plan.too_wide || plan.terms > most_terms) return false;
    Engine engine(part, plan, pool_, control_, options_.memory_limit, blocks_);
    Achieved found;
    if (!engine.hull(found)) return true;
    engine.coarse(found, options_.buckets);
    CostList floor;
    if (round > 0 && options_.pass == Pass::exact && !control_.stopped())
      engine.exact(found, options_.max_products, floor);
    achieved_.add(std::move(found.points()));
    return true;
  }

  /// Fixes the cut one variable after another, by rising marginal, stepping back where nothing is left.
  void dive() {
    States allowed(graph_.variables.size());
    int tried = 0;
    dive_from(0, allowed, tried);
  }

  bool dive_from(std::size_t depth, States& allowed, int& tried) {
    if (depth == cut_.size()) {
      solve_restricted(allowed, 0);
      return !achieved_.empty();
    }
    for (const std::uint32_t s : ordered_states(depth, allowed)) {
      if (++tried > kDiveLimit || control_.stopped()) return false;
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
      const Elimination plan = eliminate_relaxed(relaxed.graph, options_.max_table, control_);
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
  ThreadPool& pool_;
  const Control& control_;
  Achieved& achieved_;
  std::vector<std::uint32_t> cut_;
  Relaxation relaxation_;
  Elimination plan_;
  Dag dag_;
  std::vector<LaneBlock> blocks_;
  std::map<std::uint32_t, std::set<std::uint32_t>> wanted_;  // leaf of a variable -> states
  std::vector<std::vector<std::uint32_t>> chosen_;           // per lane of the last block: states of the cut
  std::set<std::vector<std::uint32_t>> tried_;               // assignments of the cut that the last round suggests
  int ascents_ = 1, ascended_ = 0;                           // evaluations of the relaxation, of all rounds
  WideResult result_;
};

}  // namespace

WideResult solve_wide(const Graph& graph, const SolveOptions& options, ThreadPool& pool, const Control& control,
                      Achieved& achieved) {
  return WideSolver(graph, options, pool, control, achieved).run();
}

}  // namespace turnpoint::frontier::detail
