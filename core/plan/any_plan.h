// SPDX-License-Identifier: Apache-2.0
// A plan of any kind that a method answers with. Whoever handles plans visits it, so that a kind that is forgotten does
// not compile.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "core/plan/placement_plan.h"
#include "core/plan/plan.h"
#include "core/plan/ratio_plan.h"

namespace turnpoint {

using PlanPtr = std::shared_ptr<const Plan>;
/// The pointers are never null.
using AnyPlan = std::variant<PlanPtr, RatioPlanPtr, PlacementPlanPtr>;

enum class PlanKind : std::uint8_t {
  sharding,   ///< one configuration per operator, all devices alike
  pipeline,   ///< a sharding plan with stages and micro-batches
  ratio,      ///< devices cut in two again and again, a share of every operator to either part
  placement,  ///< a device per task
};
inline constexpr PlanKind kPlanKinds[] = {PlanKind::sharding, PlanKind::pipeline, PlanKind::ratio, PlanKind::placement};
const char* plural_of(PlanKind kind);  ///< "placements"
PlanKind kind_of(const AnyPlan& plan);
int devices_of(const AnyPlan& plan);

/// Several visitors as one: for std::visit() of an AnyPlan, one overload a kind of pointer.
template <class... Visitors>
struct Overloads : Visitors... {
  using Visitors::operator()...;
};

/// Calls `visitor` with the plan itself, `const Plan&`, `const RatioPlan&` or `const PlacementPlan&`: one overload
/// a kind.
template <class... Visitors>
auto visit_plan(const AnyPlan& plan, Visitors&&... visitors) {
  const Overloads<std::remove_cvref_t<Visitors>...> all{std::forward<Visitors>(visitors)...};
  return std::visit([&](const auto& pointer) { return all(*pointer); }, plan);
}

}  // namespace turnpoint
