// SPDX-License-Identifier: Apache-2.0
#include "core/plan/any_plan.h"

namespace turnpoint {

const char* plural_of(PlanKind kind) {
  switch (kind) {
    case PlanKind::sharding: return "sharding plans";
    case PlanKind::pipeline: return "pipelines";
    case PlanKind::ratio: return "ratio plans";
    case PlanKind::placement: return "placements";
  }
  return "";
}

PlanKind kind_of(const AnyPlan& plan) {
  return visit_plan(
      plan, [](const Plan& one) { return one.pipeline ? PlanKind::pipeline : PlanKind::sharding; },
      [](const RatioPlan&) { return PlanKind::ratio; }, [](const PlacementPlan&) { return PlanKind::placement; });
}

int devices_of(const AnyPlan& plan) {
  return visit_plan(
      plan, [](const Plan& one) { return one.mesh.devices(); }, [](const RatioPlan& one) { return one.devices(); },
      [](const PlacementPlan& one) { return static_cast<int>(one.placement.devices); });
}

}  // namespace turnpoint
