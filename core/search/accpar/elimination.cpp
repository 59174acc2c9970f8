// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/elimination.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace turnpoint::accpar {

namespace {

struct Tolerances {
  double first = 0, second = 0;
  bool better(const PairCost& a, const PairCost& b) const {
    if (std::abs(a.first - b.first) > first) return a.first < b.first;
    return a.second < b.second - second;
  }
};

Tolerances tolerances_of(const TableSum& problem) {
  constexpr double kEqual = 1e-12;
  Tolerances sums;
  for (const Table& table : problem.tables) {
    PairCost most;
    for (const PairCost& cost : table.costs)
      most = {std::max(most.first, cost.first), std::max(most.second, cost.second)};
    sums.first += kEqual * most.first, sums.second += kEqual * most.second;
  }
  return sums;
}

/// What was best for a variable, given its neighbours.
struct Eliminated {
  std::uint32_t variable = 0;
  std::vector<std::uint32_t> scope;
  std::vector<std::uint32_t> best;
};

class Eliminator {
 public:
  explicit Eliminator(const TableSum& problem) : states_(problem.states), equal_(tolerances_of(problem)) {
    tables_.reserve(problem.tables.size() + states_.size());
    tables_of_.resize(states_.size()), neighbours_.resize(states_.size());
    for (const Table& table : problem.tables) add(table);
    for (std::uint32_t v = 0; v < states_.size(); ++v) queue_.insert({neighbours_[v].size(), v});
  }

  bool run(const EliminationLimits& limits) {
    while (!queue_.empty()) {
      const std::uint32_t variable = queue_.begin()->second;
      if (neighbours_[variable].size() > limits.max_neighbours) return false;
      if (!eliminate(variable, limits.max_table)) return false;
    }
    return true;
  }

  std::vector<std::uint32_t> choices() const {
    std::vector<std::uint32_t> chosen(states_.size(), 0);
    for (auto it = eliminated_.rbegin(); it != eliminated_.rend(); ++it) {
      std::size_t index = 0;
      for (const std::uint32_t u : it->scope) index = index * states_[u] + chosen[u];
      chosen[it->variable] = it->best[index];
    }
    return chosen;
  }

 private:
  void add(Table table) {
    const auto id = static_cast<std::uint32_t>(tables_.size());
    for (const std::uint32_t v : table.scope) {
      tables_of_[v].push_back(id);
      for (const std::uint32_t u : table.scope) {
        if (u == v) continue;
        auto& near = neighbours_[v];
        const auto at = std::lower_bound(near.begin(), near.end(), u);
        if (at == near.end() || *at != u) near.insert(at, u);
      }
    }
    tables_.push_back(std::move(table));
  }

  bool eliminate(std::uint32_t variable, std::size_t max_table) {
    const std::vector<std::uint32_t> scope = neighbours_[variable];
    const std::size_t own = states_[variable];
    std::size_t entries = 1;
    for (const std::uint32_t u : scope) {
      entries *= states_[u];
      if (entries * own > max_table) return false;
    }
    // How far each table's index moves with each variable.
    struct Walk {
      const PairCost* costs;
      std::size_t own = 0;
      std::vector<std::size_t> steps;
    };
    std::vector<Walk> walks;
    for (const std::uint32_t id : tables_of_[variable]) {
      const Table& table = tables_[id];
      Walk walk{table.costs.data(), 0, std::vector<std::size_t>(scope.size(), 0)};
      std::size_t step = 1;
      for (std::size_t d = table.scope.size(); d-- > 0; step *= states_[table.scope[d]]) {
        if (table.scope[d] == variable) {
          walk.own = step;
        } else {
          const auto at = std::lower_bound(scope.begin(), scope.end(), table.scope[d]);
          walk.steps[static_cast<std::size_t>(at - scope.begin())] = step;
        }
      }
      walks.push_back(std::move(walk));
    }
    Eliminated done{variable, scope, std::vector<std::uint32_t>(entries)};
    Table result{scope, std::vector<PairCost>(entries)};
    std::vector<std::uint32_t> digits(scope.size(), 0);
    for (std::size_t entry = 0; entry < entries; ++entry) {
      for (std::uint32_t s = 0; s < own; ++s) {
        PairCost sum;
        for (const Walk& walk : walks) {
          const PairCost& cost = walk.costs[s * walk.own];
          sum.first += cost.first, sum.second += cost.second;
        }
        if (s == 0 || equal_.better(sum, result.costs[entry])) result.costs[entry] = sum, done.best[entry] = s;
      }
      for (std::size_t d = scope.size(); d-- > 0;) {
        if (++digits[d] < states_[scope[d]]) {
          for (Walk& walk : walks) walk.costs += walk.steps[d];
          break;
        }
        for (Walk& walk : walks) walk.costs -= walk.steps[d] * (digits[d] - 1);
        digits[d] = 0;
      }
    }
    retire(variable, scope);
    eliminated_.push_back(std::move(done));
    if (!scope.empty()) add(std::move(result));
    for (const std::uint32_t u : scope) queue_.insert({neighbours_[u].size(), u});
    return true;
  }

  /// Takes the variable and its tables away from its neighbours, and these from the queue until they are complete
  /// again.
  void retire(std::uint32_t variable, const std::vector<std::uint32_t>& scope) {
    queue_.erase({scope.size(), variable});
    for (const std::uint32_t u : scope) {
      queue_.erase({neighbours_[u].size(), u});
      auto& near = neighbours_[u];
      near.erase(std::lower_bound(near.begin(), near.end(), variable));
      std::erase_if(tables_of_[u], [&](std::uint32_t id) {
        const auto& others = tables_[id].scope;
        return std::binary_search(others.begin(), others.end(), variable);
      });
    }
    for (const std::uint32_t id : tables_of_[variable]) tables_[id].costs = {};
    tables_of_[variable].clear();
  }

  std::vector<std::uint32_t> states_;
  Tolerances equal_;
  std::vector<Table> tables_;
  std::vector<std::vector<std::uint32_t>> tables_of_, neighbours_;
  std::set<std::pair<std::size_t, std::uint32_t>> queue_;  ///< variables that are left, fewest neighbours first
  std::vector<Eliminated> eliminated_;
};

}  // namespace

std::optional<std::vector<std::uint32_t>> least_sum(const TableSum& problem, const EliminationLimits& limits) {
  Eliminator eliminator(problem);
  if (!eliminator.run(limits)) return std::nullopt;
  return eliminator.choices();
}

}  // namespace turnpoint::accpar
