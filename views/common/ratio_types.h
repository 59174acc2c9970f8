// SPDX-License-Identifier: Apache-2.0
// The types I, II and III by which a ratio plan cuts its layers, beside the loops that they cut.
#pragma once

#include <QString>
#include <array>
#include <optional>
#include <span>

#include "views/common/plan_figures.h"

namespace turnpoint::views {

/// "I batch ①② · III out-channel ③": how operators of one configuration are split on the way to the first device, every
/// loop behind the type of their layers there, "II/III" where these differ. A loop without a known type stands alone.
/// The configuration's own text where the figures are neither a ratio plan's nor typed ones.
QString typed_split(const PlanFigures& figures, std::span<const OperatorId> operators);
/// Which types cut any operator on that way.
std::array<bool, 3> types_of(const PlanFigures& figures);
/// By which type an operator with a weight is cut along an axis of a plan that splits operators: samples, what its
/// weight is summed over, or what comes out. Nothing of other operators, and along axes that repeat its work.
std::optional<PartitionType> type_along(const Model& model, const PlanOperator& op, std::size_t axis);
/// "Layers by type: 5 I, 3 III along x; 8 I along y."; empty: no layer is cut.
QString typed_layers(const Plan& plan, const Model& model);
/// "I batch: samples are shared out", a line of a legend.
QString type_words(PartitionType type);
/// The same as a sentence on what either half computes, holds and receives.
QString type_sentence(PartitionType type);

}  // namespace turnpoint::views
