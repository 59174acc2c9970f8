// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/dag.h"

#include <array>
#include <map>

namespace turnpoint::frontier::detail {

void build_dag(const Graph& graph, const Elimination& plan, Dag& dag) {
  dag = Dag();
  dag.plan = &plan;
  dag.unit.offsets = {0, 1};
  dag.unit.memory = {0};
  dag.unit.time = {0};
  dag.unique_of.assign(plan.tables(), 0);
  dag.producer.assign(plan.tables(), 0);
  std::map<std::uint32_t, std::uint32_t> leaf_tables;
  const auto add_leaf = [&](std::size_t table, std::uint32_t leaf) {
    const auto [it, fresh] = leaf_tables.emplace(leaf, static_cast<std::uint32_t>(dag.tables.size()));
    if (fresh) dag.tables.push_back({graph.leaves[leaf]->entries(), graph.leaves[leaf].get()});
    dag.unique_of[table] = it->second;
  };
  for (std::size_t v = 0; v < plan.variables; ++v) add_leaf(v, graph.variables[v].leaf);
  for (std::size_t k = 0; k < plan.factors; ++k) add_leaf(plan.variables + k, graph.factors[k].leaf);
  dag.unique_of[plan.unit_table()] = static_cast<std::uint32_t>(dag.tables.size());
  dag.tables.push_back({1, &dag.unit});

  std::map<std::array<std::uint32_t, 3>, std::uint32_t> known;
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    dag.producer[step.out] = i;
    const std::array<std::uint32_t, 3> key{dag.unique_of[step.p], dag.unique_of[step.f], step.shape};
    const auto [it, fresh] = known.emplace(key, static_cast<std::uint32_t>(dag.tables.size()));
    if (fresh) {
      const Shape* shape = plan.shapes[step.shape].get();
      dag.steps.push_back({key[0], key[1], it->second, shape});
      dag.tables.push_back({shape->entries(), nullptr});
    }
    dag.unique_of[step.out] = it->second;
  }
  dag.root = dag.unique_of[plan.root];
}

}  // namespace turnpoint::frontier::detail
