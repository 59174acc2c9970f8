// SPDX-License-Identifier: Apache-2.0
// A partition of equal devices into equal halves is a sharding plan: the axes of the mesh are the levels, and a layer's
// type says which loop an axis splits. Every other operator works on what its layer left there.
#pragma once

#include <vector>

#include "core/cost/layout.h"
#include "core/scenario/scenario.h"
#include "core/search/accpar/device_tree.h"
#include "core/search/accpar/hierarchy.h"
#include "core/search/accpar/model_layers.h"

namespace turnpoint::accpar {

/// Whether the devices are equal, and halves of halves down to the last.
bool in_equal_halves(const Cluster& cluster);

/// Counts of every layer's lengths only the factors of two, of loops that may be split: then whatever a type cuts falls
/// into whole halves, and cutting ends where none would.
void keep_whole_halves(const Model& model, bool split_windows, ModelLayers& layers);

/// The types of every level, outermost first; [level][layer]. The assignment's halves are all alike.
std::vector<std::vector<Type>> types_by_level(const Assignment& assignment);

/// A configuration for each operator: layers by their types, others by what their layer leaves them, data by what its
/// first reader wants. Errors: a layer that a type would split against the rules of configurations
/// (resources/manual/costs.md, 1), named.
Expected<IdVector<OperatorId, Configuration>> configurations_of(const Model& model, const Mesh& mesh,
                                                                bool split_windows, const ModelLayers& layers,
                                                                const std::vector<std::vector<Type>>& levels);

}  // namespace turnpoint::accpar
