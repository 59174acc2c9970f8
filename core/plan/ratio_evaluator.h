// SPDX-License-Identifier: Apache-2.0
// What a ratio plan costs, worked out from its shares alone: every device's own work, by its own speed and memory
// bandwidth; what the halves of every cut exchange; what each device holds.
//
// At a cut a tensor is split, whole or a partial sum on either half, as a layout of one axis would have it. A half
// fetches what it lacks of the state that a reader wants: of a split tensor that is to be whole 1 - had, between splits
// of two dimensions wanted * (1 - had), of the same dimension what it has too little; of a partial sum all, or what it
// wants of it (mathematics.md, 4). It receives at the rate of the links of its devices that lead to the other half, and
// both halves wait for the slower one, with one hop's latency, two for a sum that all want. Gradients of a cut travel in
// buckets, as in other plans. An operator takes as long
// as on its slowest device. Times are the data sheet's: neither measured times nor curves of collectives are of unequal
// parts (resources/manual/costs.md, 3, third rule).
#pragma once

#include "core/plan/ratio_plan.h"

namespace turnpoint {

/// The same plan with all its costs. Errors: a tree that does not hold every device of the cluster once, cuts that do
/// not go with it, shares of loops that an operator does not have, that may not be split, or that leave a part nothing,
/// each named; a scenario in 8 bits, whose casts are not priced here.
Expected<RatioPlan> evaluate_ratio_plan(const Scenario& scenario, RatioPlan plan);

}  // namespace turnpoint
