// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/expansion.h"

#include <algorithm>

#include "core/cost/operator_cost.h"
#include "core/schedule/cell_parts.h"

namespace turnpoint {

std::int64_t gates_of(const CellProgram& cell, std::int64_t gates, std::uint32_t part) {
  const auto makers = cell.product_readers();
  const auto at = std::find(makers.begin(), makers.end(), part);
  return at == makers.end() ? 0 : piece(gates, std::int64_t(makers.size()), at - makers.begin());
}

double time_share(const CellProgram& cell, TaskRole role, bool unsplit, std::uint32_t part) {
  if (!cell.in_parts()) return 1;
  if (role == TaskRole::weight_gradient) return cell.parameter_share[part];
  if (!unsplit) return cell.share[part];
  const auto parts = cell.share.size();
  return (part < parts ? cell.share[part] : cell.parameter_share[part - parts]) / 2;
}

double seconds_of_share(double whole_s, double launch_s, double share) {
  return whole_s * share + std::min(launch_s, whole_s) * (1 - share);
}

double measured_launch_s(const DeviceTimes& times, const Scenario& scenario, const Operator& op, bool backward) {
  const OperatorFit* fit =
      times.fit(plain_precision(scenario.settings.precision), fitted_kind(*scenario.model, op), backward);
  return fit ? fit->launch_s : 0;
}

}  // namespace turnpoint
