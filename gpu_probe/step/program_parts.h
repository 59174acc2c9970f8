// SPDX-License-Identifier: Apache-2.0
// Parts of making a Program.
#pragma once

#include "gpu_probe/step/program.h"

namespace turnpoint::step::TURNPOINT_REAL {

/// Partial in both on the same axes, else alike: the sum is made later, at the source.
bool gradients_meet(const Layout& from, const Layout& gradient);

/// [tensor]: somebody's backward reads it, directly or through views.
std::vector<bool> readers_keep(const Model& model);

/// [input]: the scale of a normalisation, which the gradient of its input reads and the model does not mark as saved.
std::vector<bool> unsaved_reads(const Model& model, const Operator& op);

/// Marks the operators that run again in backward: those whose plan says so and that can, because backward finds what
/// they read: they keep it themselves, or their only producer keeps it or runs again as well.
void mark_runs_again(Program& program);

/// Later uses of matrices that an operator before them stores (vectors are stored by every user); marks who owns what.
Expected<std::vector<Tie>> find_ties(const Model& model, Program& program);

/// The sets of parameters of one operator with their part of the plan's gradient_sync.
Expected<void> add_parameters(Program& program, OperatorId id);

}  // namespace turnpoint::step::TURNPOINT_REAL
