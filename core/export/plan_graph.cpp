// SPDX-License-Identifier: Apache-2.0
#include "core/export/plan_graph.h"

#include <algorithm>
#include <map>

#include "core/plan/iteration_cost.h"

namespace turnpoint {

namespace {

struct Share {
  std::string words;
  double time_s = 0;
  std::size_t operators = 0, first = 0;
};

void colour_configurations(PlanGraph& graph) {
  std::map<std::string, std::size_t> index;
  std::vector<Share> shares;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& node = graph.nodes[i];
    const auto [at, added] = index.emplace(node.configuration, shares.size());
    if (added) shares.push_back({node.configuration, 0, 0, i});
    shares[at->second].time_s += node.cost.time_s();
    ++shares[at->second].operators;
  }
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.time_s != b.time_s ? a.time_s > b.time_s : a.first < b.first;
  });
  const int last = kConfigurationColourCount - 1;
  const bool others = shares.size() > static_cast<std::size_t>(kConfigurationColourCount);
  std::map<std::string, int> colour;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const bool own = !others || i < static_cast<std::size_t>(last);
    const int c = own ? static_cast<int>(i) : last;
    colour[shares[i].words] = c;
    if (own)
      graph.legend.push_back({shares[i].words, c, shares[i].operators});
    else if (i == static_cast<std::size_t>(last))
      graph.legend.push_back({"other", last, shares[i].operators});
    else
      graph.legend.back().operators += shares[i].operators;
  }
  for (auto& node : graph.nodes) node.colour = colour[node.configuration];
}

void rank_edges(PlanGraph& graph) {
  std::vector<double> times;
  for (const auto& edge : graph.edges)
    if (edge.reshard_s > 0) times.push_back(edge.reshard_s);
  std::sort(times.begin(), times.end());
  for (auto& edge : graph.edges) {
    if (edge.reshard_s <= 0) continue;
    const auto above = std::upper_bound(times.begin(), times.end(), edge.reshard_s) - times.begin();
    edge.weight = static_cast<double>(above) / static_cast<double>(times.size());
  }
}

}  // namespace

PlanGraph make_plan_graph(const Scenario& scenario, const Plan& plan) {
  const Model& model = *scenario.model;
  PlanGraph graph;
  for (const PlanOperator& item : plan.operators) {
    const Operator& op = model.operators[item.op];
    graph.nodes.push_back(
        {op.name, describe(plan.mesh, item.split, op), 0, op.is_view(), of_iteration(item, plan.micro_batches())});
  }
  // A resharding shared by all consumers is drawn on each of its edges.
  std::map<std::pair<TensorId, OperatorId>, double> time;
  for (const PlanReshard& item : plan.reshards)
    time[{item.tensor, item.consumer}] += of_iteration(item, plan.micro_batches()).time_s();
  for (std::size_t t = 0; t < model.tensors.size() && t < model.uses.size(); ++t) {
    const TensorId id(t);
    const Tensor& tensor = model.tensors[id];
    if (!tensor.producer.valid()) continue;
    OperatorId previous;
    for (const auto& use : model.uses[id]) {
      if (use.op == previous) continue;
      previous = use.op;
      double seconds = 0;
      for (const OperatorId consumer : {use.op, OperatorId()})
        if (const auto found = time.find({id, consumer}); found != time.end()) seconds += found->second;
      graph.edges.push_back({tensor.producer.index, use.op.index, tensor.name, seconds, 0});
    }
  }
  colour_configurations(graph);
  rank_edges(graph);
  return graph;
}

}  // namespace turnpoint
