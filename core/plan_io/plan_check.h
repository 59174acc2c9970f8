// SPDX-License-Identifier: Apache-2.0
// Whether a plan that was read is one for its scenario: its mesh, and every cost that its file states.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// To 1e-9, as files keep numbers.
bool near(double a, double b);

/// Costs as a file states them: totals, and parts where it has them.
struct ReadCost {
  std::int64_t memory_bytes = 0;
  double compute_s = 0, network_s = 0;
  bool parts = false;
};

Expected<void> same_mesh(const Mesh& read, const Mesh& now, const std::string& where);

/// Costs of operators from before they had parts: what the cost model says, and what is left is kept and run again.
void give_parts(const Scenario& scenario, Plan& plan, const std::vector<ReadCost>& totals);

/// `parts`: the file has them. Bad input: the first cost that is not what the evaluator and the cost model say.
Expected<void> check_costs(const Scenario& scenario, const Plan& plan, bool parts, const std::string& where);

}  // namespace turnpoint
