// SPDX-License-Identifier: Apache-2.0
// What drawings of a plan share: which configuration has which colour, and what a tensor's way to a consumer costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Fill colours of configurations, told apart by people with any kind of colour vision; the last one stands for
/// "other".
inline constexpr const char* kConfigurationColours[] = {"#77AADD", "#EE8866", "#44BB99", "#EEDD88",
                                                        "#FFAABB", "#BBCC33", "#99DDFF", "#D5D8DB"};
inline constexpr int kConfigurationColourCount = 8;

struct PlanGraph {
  struct Node {
    std::string name, configuration;  ///< as shown; not escaped
    int colour = 0;                   ///< index into kConfigurationColours
    bool is_view = false;
    CostBreakdown cost;
  };
  struct Edge {
    std::uint32_t from = 0, to = 0;  ///< operators
    std::string tensor;
    double reshard_s = 0;
    double weight = 0;  ///< 0: no resharding, else in (0, 1] by the rank of its time within the plan
  };
  struct Legend {
    std::string configuration;
    int colour = 0;
    std::size_t operators = 0;
  };
  std::vector<Node> nodes;  ///< one per operator, same order
  std::vector<Edge> edges;  ///< one per (producer, consumer, tensor)
  std::vector<Legend> legend;
};

/// Up to eight configurations have a colour of their own; beyond, the seven that take most time.
PlanGraph make_plan_graph(const Scenario& scenario, const Plan& plan);

}  // namespace turnpoint
