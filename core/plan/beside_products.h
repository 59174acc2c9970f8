// SPDX-License-Identifier: Apache-2.0
// Collectives of tensor groups beside the products that they feed or follow, as Transformer Engine makes them under
// Megatron-LM's --tp-comm-overlap (with sequence parallelism; Wang et al., ASPLOS 2023, "Overlap Communication with
// Dependent Computation via Decomposition", has the decomposition). Which collectives, by the engine's defaults:
//
//  - In steps (a ring exchange): the gather in front of a column-parallel product, the scatter behind a row-parallel
//    one, and the gather of the gradient in front of the latter's backward. The product is cut into as many parts as
//    the group has devices, and a part is multiplied while the next one is on its way. Of a product of p seconds, with
//    the launches of its parts, and a collective of c seconds what takes longer counts, and one part:
//    max(p, c + p/g).
//  - Beside the other product of backward: what a column-parallel product gathers again runs beside the product for the
//    gradient of its input, the scatter of that gradient beside the product for the gradient of its weight. Both are
//    half of backward: max(p, c).
//
// What runs at the same time is slowed as on the simulated clock (Cluster::overlap_slowdown). Products over a
// vocabulary and those of experts have no such overlap there. A step's time_s is what shows of its collective, on both
// clocks.
#pragma once

#include <cstddef>
#include <vector>

#include "core/plan/charges.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

struct BesideProducts {
  std::size_t reshard = 0;  ///< of the plan
  ReshardRole role = ReshardRole::forward;
  std::size_t step = 0;              ///< of that role
  std::vector<OperatorId> products;  ///< as engines make one of them
  bool in_steps = false;             ///< otherwise beside one half of their backward
};

/// The collectives of a plan on one stage's mesh that run so.
std::vector<BesideProducts> beside_products(const Model& model, const Plan& plan);

/// Seconds by which a collective of `collective_s` makes products of `product_s` longer in a group of `devices`.
struct Overlap {
  double launch_s = 0;  ///< of each further part of a product
  double slowdown = 1;  ///< of what computes and what is sent at the same time; at least 1
};
double shown_in_steps_s(double collective_s, double product_s, double devices, const Overlap& overlap);
double shown_beside_s(double collective_s, double product_s, const Overlap& overlap);

/// Steps of a plan on one stage's mesh that hold their whole times take those that show; reshardings' costs follow.
void put_beside_products(const Scenario& one_stage, Plan& plan);

/// Adds to charges of the whole times what shows instead, priced anew: mostly less, so that most are negative.
void hide_beside_products(const Scenario& one_stage, const Plan& plan, int micro_batches,
                          std::vector<PlanCharge>& charges);

}  // namespace turnpoint
