// SPDX-License-Identifier: Apache-2.0
// A cluster of round numbers and what is needed to cost a model's operators on it.
#pragma once

#include <QtTest>
#include <cmath>
#include <functional>
#include <memory>

#include "core/cost/operator_cost.h"

namespace turnpoint::test {

// Round numbers: 1 TFLOP/s, 100 GB/s memory, 10 GB/s links inside a node and 1 GB/s per node between, no efficiency
// loss.
inline Cluster round_cluster(int nodes, int per_node) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.devices_per_node = per_node;
  cluster.device.memory_bytes = std::int64_t(1) << 30;
  cluster.device.peak_fp32 = 1e12;
  cluster.device.peak_bf16 = 4e12;
  cluster.device.peak_fp8 = 8e12;
  cluster.device.memory_bandwidth = 1e11;
  cluster.device.flop_efficiency = cluster.device.memory_efficiency = 1;
  cluster.device.launch_s = 1e-6;
  cluster.links[kInterNode] = {"inter", 1e9, 1e-6};
  cluster.links[kIntraNode] = {"intra", 1e10, 1e-6};
  return cluster;
}

// A scenario on round numbers and what is needed to cost its operators.
struct Setting {
  Scenario scenario;
  TensorUses uses;
  std::unique_ptr<ReshardingModel> resharding;
  std::unique_ptr<OperatorCostModel> costs;

  explicit Setting(ModelPtr model, int nodes, int per_node, const std::function<void(Settings&)>& change = {},
                   const std::function<void(Cluster&)>& on = {}) {
    scenario.model = std::move(model);
    auto cluster = std::make_shared<Cluster>(round_cluster(nodes, per_node));
    if (on) on(*cluster);
    scenario.cluster = std::move(cluster);
    if (change) change(scenario.settings);
    uses = analyse_tensor_uses(*scenario.model);
    resharding = std::make_unique<ReshardingModel>(make_mesh(*scenario.cluster),
                                                   CollectiveModel(*scenario.cluster, scenario.settings.factors), 1e11);
    costs = std::make_unique<OperatorCostModel>(scenario, uses, *resharding);
  }
  OperatorId find(const std::string& name) const {
    for (std::size_t i = 0; i < scenario.model->operators.size(); ++i)
      if (scenario.model->operators[OperatorId(i)].name == name) return OperatorId(i);
    qFatal("no operator %s", name.c_str());
  }
  CostBreakdown data_parallel(const std::string& name) const {
    const OperatorId id = find(name);
    return costs->cost(id, data_parallel_configuration(scenario.model->operators[id], resharding->mesh())).breakdown;
  }
};

inline bool close(double a, double b) { return std::abs(a - b) <= 1e-12 + 1e-9 * std::max(std::abs(a), std::abs(b)); }

}  // namespace turnpoint::test
