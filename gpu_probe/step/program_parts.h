// SPDX-License-Identifier: Apache-2.0
// Parts of making a Program.
#pragma once

#include "gpu_probe/step/program.h"

namespace turnpoint::step {

/// Partial in both on the same axes, else alike: the sum is made later, at the source.
bool gradients_meet(const Layout& from, const Layout& gradient);

/// [tensor]: somebody's backward reads it, directly or through views.
std::vector<bool> readers_keep(const Model& model);

/// Marks an operator that runs again in backward: its plan says so and it can, because backward finds what it reads: it
/// keeps that itself, or its only producer keeps it or runs again as well. Those before it are marked already.
void mark_runs_again(Program& program, OperatorId id);

/// Later uses of matrices that an operator before them stores (vectors are stored by every user); marks who owns what.
Expected<std::vector<Tie>> find_ties(const Model& model, Program& program);

/// The sets of parameters of one operator with their steps of the plan, which are checked and not believed.
Expected<void> add_parameters(Program& program, OperatorId id);

}  // namespace turnpoint::step
