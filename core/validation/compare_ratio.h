// SPDX-License-Identifier: Apache-2.0
// What was predicted of a ratio plan's step beside what was measured of it.
//
// Predicted: the plan's own items (core/plan/ratio_evaluator.h): an operator as long as on its slowest device, what the
// halves of every cut exchange. Collectives are the moves of a tensor, forward and back, and of an operator's weights.
// Bytes sent are those that halves receive, over all cuts: where a half is several devices that all want an element,
// plan and measurement count it once, and a note says what arrived in all.
#pragma once

#include "core/base/expected.h"
#include "core/plan/ratio_plan.h"
#include "core/validation/compare.h"

namespace turnpoint {

/// `plan` priced for `scenario`. Error: the measurement is not one of this plan.
Expected<ValidationReport> compare_ratio(const Scenario& scenario, const RatioPlan& plan,
                                         const StepMeasurement& measurement, const CompareLabels& labels);

}  // namespace turnpoint
