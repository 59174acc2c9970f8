// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/wide.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace turnpoint::frontier::detail {

namespace {

using States = std::vector<std::vector<std::uint32_t>>;  // per variable: allowed states, empty = all

constexpr int kAscentRounds = 12;        // updates of the multipliers per set of slopes
constexpr std::size_t kAssignments = 8;  // assignments of the cut that are solved per round
constexpr int kDiveLimit = 4000;         // relaxations tried when no assignment was feasible

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
  Graph graph;
  std::vector<std::vector<std::uint32_t>> copies;  ///< per cut variable: its copies in `graph`
};

Relaxation relax(const Graph& graph, const std::vector<std::uint32_t>& cut) {
  Relaxation result{graph, {}};
  Graph& g = result.graph;
  for (const std::uint32_t w : cut) {
    std::vector<std::uint32_t> copies;
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
    for (Factor& f : g.factors) {
      if (f.a != w && f.b != w) continue;
      if (!copies.empty()) {
        copy = static_cast<std::uint32_t>(g.variables.size());
        g.variables.push_back(g.variables[w]);
      }
      g.variables[copy].origin = kNoOrigin;
      g.variables[copy].leaf =
          static_cast<std::uint32_t>(g.leaves.size());  // its own, although equal: it gets its own multipliers
      g.leaves.push_back(std::make_shared<const Leaf>(part));
      (f.a == w ? f.a : f.b) = copy;
      copies.push_back(copy);
    }
    if (copies.empty()) copies.push_back(w);
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
    for (int round = 0; round < rounds && (round == 0 || !control_.stopped()); ++round) {
      if (round > 0) choose_weights(achieved_, round + 1 < rounds ? kLanes : 2 * kLanes, memory, time);
      for (std::size_t first = 0; first < memory.size() && (round == 0 || !control_.stopped()); first += kLanes)
        if (!ascend(memory, time, first, round)) return std::move(result_);
      control_.report("bounds of a wide problem", double(round + 1) / rounds);
      if (achieved_.empty()) dive();
      if (achieved_.empty()) return std::move(result_);
    }
    return std::move(result_);
  }

 private:
  /// Improves the lower bound of sixteen slopes and solves the assignments of the cut that they suggest.
  bool ascend(const std::vector<double>& memory, const std::vector<double>& time, std::size_t first, int round) {
    LaneBlock block;
    for (std::size_t l = 0; l < kLanes; ++l) {
      const std::size_t i = std::min(first + l, memory.size() - 1);
      block.weight_memory[l] = memory[i];
      block.weight_time[l] = time[i];
    }
    block.adjust.resize(dag_.tables.size());
    for (const auto& copies : relaxation_.copies)
      for (const std::uint32_t c : copies)
        block.adjust[dag_.unique_of[c]].assign(dag_.tables[dag_.unique_of[c]].entries * kLanes, 0);
    Lanes best;
    best.fill(-std::numeric_limits<double>::infinity());
    Lanes everything;
    everything.fill(kNoLimit);
    std::set<std::vector<std::uint32_t>> tried;
    for (int i = 0; i < kAscentRounds; ++i) {
      if (!block.inside(dag_, control_)) {
        result_.infeasible = !control_.cancelled() && i == 0;
        return false;
      }
      for (std::size_t l = 0; l < kLanes; ++l)
        best[l] = std::max(best[l], block.bound(static_cast<int>(l)) -
                                        block.margin(static_cast<int>(l), std::abs(block.bound(static_cast<int>(l)))));
      block.outside(dag_, separate(everything), control_);
      if (control_.cancelled()) return false;
      const bool last = i + 1 == kAscentRounds || control_.stopped();
      update(block, last ? &tried : nullptr);
      if (last) break;
    }
    for (std::size_t l = 0; l < kLanes; ++l)
      result_.planes.push_back({block.weight_memory[l], block.weight_time[l], best[l]});
    solve_assignments(tried, round);
    return true;
  }

  /// Moves the min-marginals of the copies of a variable towards their mean; notes the best common state of every lane.
  void update(LaneBlock& block, std::set<std::vector<std::uint32_t>>* assignments) const {
    std::vector<std::vector<std::uint32_t>> chosen(kLanes);
    const float damping = 1.0f / (1.0f + static_cast<float>(cut_.size() > 1));
    for (const auto& copies : relaxation_.copies) {
      std::vector<LaneValues> marginals;
      for (const std::uint32_t c : copies) marginals.push_back(block.marginals(dag_.unique_of[c]));
      std::vector<float> sum(marginals[0].size(), 0);
      for (const auto& m : marginals)
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += m[i];
      const auto count = static_cast<float>(copies.size());
      for (std::size_t k = 0; k < copies.size(); ++k) {
        auto& adjust = block.adjust[dag_.unique_of[copies[k]]];
        for (std::size_t i = 0; i < sum.size(); ++i)
          if (sum[i] < 1e28f) adjust[i] += double(damping) * (double(sum[i]) / count - marginals[k][i]);
      }
      balance(block, copies);
      for (std::size_t l = 0; assignments && l < kLanes; ++l) {
        std::size_t state = 0;
        for (std::size_t s = 1; s < sum.size() / kLanes; ++s)
          if (sum[s * kLanes + l] < sum[state * kLanes + l]) state = s;
        chosen[l].push_back(static_cast<std::uint32_t>(state));
      }
    }
    if (assignments)
      for (auto& c : chosen) assignments->insert(std::move(c));
  }

  /// The multipliers of one state must not add up to more than nothing, whatever rounding did.
  void balance(LaneBlock& block, const std::vector<std::uint32_t>& copies) const {
    auto& first = block.adjust[dag_.unique_of[copies[0]]];
    for (std::size_t i = 0; i < first.size(); ++i) {
      double others = 0, size = 0;
      for (std::size_t k = 1; k < copies.size(); ++k) {
        const double v = block.adjust[dag_.unique_of[copies[k]]][i];
        others += v;
        size += std::abs(v);
      }
      first[i] = -others - size * 1e-15 * static_cast<double>(copies.size());
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

  /// False if it is too wide still.
  bool solve_restricted(const States& allowed, int round) {
    const Graph part = restrict_states(graph_, allowed);
    const Elimination plan = eliminate(part, options_.max_table, control_.stop());
    if (control_.cancelled()) return true;
    if (plan.too_wide) return false;
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
  WideResult result_;
};

}  // namespace

WideResult solve_wide(const Graph& graph, const SolveOptions& options, ThreadPool& pool, const Control& control,
                      Achieved& achieved) {
  return WideSolver(graph, options, pool, control, achieved).run();
}

}  // namespace turnpoint::frontier::detail
