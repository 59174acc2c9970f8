// SPDX-License-Identifier: Apache-2.0
// A partition of any devices as a ratio plan (core/plan/ratio_plan.h): at every cut a layer gives the first half its
// share of one of the loops that its type cuts, and every other operator goes by what its layer left there.
#pragma once

#include "core/plan/ratio_plan.h"
#include "core/search/accpar/device_tree.h"
#include "core/search/accpar/hierarchy.h"
#include "core/search/accpar/model_layers.h"

namespace turnpoint::accpar {

/// The cluster's own devices, unlike ones as they are, at the scenario's precision and sliders: nodes below their
/// links, devices below theirs.
DeviceTree tree_of_devices(const Scenario& scenario);

/// Loops that may not be split are left to other types, as far as a layer has others.
void keep_splittable(const Model& model, bool split_windows, ModelLayers& layers);

/// Without costs: evaluate_ratio_plan() knows them. Shares are whole units of the loops, nearest to the assignment's.
RatioPlan ratio_plan_of(const Scenario& scenario, const Bisection& devices, const Assignment& assignment,
                        const ModelLayers& layers);

}  // namespace turnpoint::accpar
