// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/forced.h"

#include <algorithm>
#include <map>
#include <utility>

namespace turnpoint::search {

namespace {

/// Whether running again is a choice of the pairs that start at its output, not of the operator's configuration.
bool runs_again_in_pairs(const Structure& structure, OperatorId op) {
  return structure.recompute && structure.uses.run_again[op.index] == RunAgain::folded;
}

/// What is left of a pair's table where its producer must, or must not, run again for it. Where it must, so must
/// whoever alone is a reason to: an entry in which nobody's backward reads the tensor is gone. A table of such entries
/// alone stays as it is.
struct LeftOfPair {
  frontier::CostTable costs;
  std::shared_ptr<const std::vector<std::uint16_t>> alternatives;  ///< of its points, back to back
};

LeftOfPair left_of_pair(const PairTable& table, const Mesh& mesh, const frontier::CostTable& all, bool again) {
  LeftOfPair left;
  auto alternatives = std::make_shared<std::vector<std::uint16_t>>();
  std::vector<frontier::CostPoint> points;
  bool some = false;
  for (std::size_t r = 0; r < table.from.size(); ++r)
    for (std::size_t c = 0; c < table.to.size(); ++c) {
      PairTimes times;  // which alternatives there are does not depend on how long they take
      times.producer_again = !table.from_again.empty() && table.from_again[r];
      times.consumer_again = !table.to_again.empty() && table.to_again[c];
      const PairAlternatives found = pair_alternatives(table, mesh, table.from[r], table.to[c], times);
      const auto entry = all[r * table.to.size() + c];
      points.clear();
      for (std::size_t i = 0; i < entry.size(); ++i) {
        if ((found.item[i].copy == Copy::again) != again) continue;
        some = true;
        points.push_back(entry[i]);
        alternatives->push_back(static_cast<std::uint16_t>(i));
      }
      left.costs.add(points);
    }
  if (!some) return {all, nullptr};
  left.alternatives = std::move(alternatives);
  return left;
}

}  // namespace

std::vector<OperatorCostModel::Alternative> forced_alternatives(const Prices& prices, const Variable& variable,
                                                                std::size_t configuration, const Forced& forced) {
  const Structure& structure = prices.structure();
  const OperatorChoices& choices = *variable.choices;
  const Configuration& split = choices.configurations[configuration];
  if (forced.split && !forced.split(variable.op, split)) return {};
  const bool carries = !choices.again.empty(), again = carries && choices.again[configuration];
  if (carries && forced.again != ForcedAgain::free && again != (forced.again == ForcedAgain::again)) return {};
  const auto left = [&](bool inside) {
    return prices.operators().alternatives(variable.op, split, again, [&](const MemoryChoice& choice) {
      if (forced.again == ForcedAgain::keep && choice.recompute) return false;
      return (!inside || choice.recompute) && (!forced.choice || forced.choice(choice));
    });
  };
  if (forced.again != ForcedAgain::again || carries) return left(false);
  if (auto some = left(true); !some.empty()) return some;
  if (runs_again_in_pairs(structure, variable.op)) return left(false);
  return {};
}

bool can_be_forced(const Prices& prices, OperatorId op, const Forced& forced) {
  const Variable& variable = prices.structure().variables[op.index];
  for (std::size_t c = 0; c < variable.size(); ++c)
    if (!forced_alternatives(prices, variable, c, forced).empty()) return true;
  return false;
}

ForcedProblem::ForcedProblem(const std::shared_ptr<const Prices>& free, const PricedProblem& problem,
                             const ForcedOperators& forced)
    : priced_(problem) {
  auto structure = std::make_shared<Structure>(free->structure());
  structure->forced = forced;
  std::map<std::pair<std::uint32_t, const Forced*>, std::uint32_t> group_of;
  for (Variable& variable : structure->variables) {
    if (!variable.choices || !forced[variable.op.index]) continue;
    const auto [it, fresh] = group_of.try_emplace({variable.cost_group, forced[variable.op.index].get()},
                                                  static_cast<std::uint32_t>(structure->group_example.size()));
    if (fresh) structure->group_example.push_back(variable.op.index);
    variable.cost_group = it->second;
  }
  const std::uint32_t known_groups = structure->cost_groups;
  structure->cost_groups = static_cast<std::uint32_t>(structure->group_example.size());
  prices_ = std::make_shared<const Prices>(free->scenario_pointer(), structure, free.get());

  priced_.operators.resize(structure->cost_groups);
  std::vector<frontier::CostTable> costs(structure->cost_groups - known_groups);
  for (std::uint32_t g = known_groups; g < structure->cost_groups; ++g) {
    const Variable& example = structure->variables[structure->group_example[g]];
    costs[g - known_groups] = operator_costs(*prices_, example, priced_.operators[g]);
  }
  for (std::size_t v = 0; v < structure->variables.size(); ++v)
    if (const Variable& variable = structure->variables[v]; variable.choices && variable.cost_group >= known_groups)
      priced_.problem.nodes[v].costs = costs[variable.cost_group - known_groups];

  problem_ = priced_.problem;
  alternatives_.resize(structure->pairs.size());
  std::map<std::pair<std::uint32_t, bool>, LeftOfPair> left_of;
  for (std::size_t p = 0; p < structure->pairs.size(); ++p) {
    const Pair& pair = structure->pairs[p];
    const PairTable& table = structure->tables[pair.table];
    const Variable& producer = structure->variables[pair.from];
    if (!producer.choices || !table.again.valid()) continue;
    const auto& asked = forced[producer.op.index];
    if (!asked || asked->again == ForcedAgain::free) continue;
    const bool again = asked->again == ForcedAgain::again;
    const auto [it, fresh] = left_of.try_emplace({pair.table, again});
    if (fresh) it->second = left_of_pair(table, structure->mesh, problem_.edges[p].costs, again);
    problem_.edges[p].costs = it->second.costs;
    alternatives_[p] = it->second.alternatives;
  }
}

void ForcedProblem::as_priced(frontier::Point& plan) const {
  for (std::size_t p = 0; p < alternatives_.size(); ++p) {
    if (!alternatives_[p]) continue;
    const frontier::Edge& edge = problem_.edges[p];
    const std::size_t entry =
        std::size_t(edge.from_class[plan.configs[edge.from]]) * edge.columns + edge.to_class[plan.configs[edge.to]];
    auto& alternative = plan.edge_alternatives[p];
    alternative = (*alternatives_[p])[edge.costs.offsets()[entry] + alternative];
  }
}

}  // namespace turnpoint::search
