// SPDX-License-Identifier: Apache-2.0
// Recurrent operators of a training graph as their time steps, as frameworks that unroll them run them.
//
// A forward step reads the step before it and what the layer below made for it; backward steps run the other way
// round. A layer that works step by step itself (the next recurrent operator, or an elementwise operator or
// concatenation between two) follows step by step; everything else waits for all steps and feeds all. Both directions
// of a bidirectional operator have steps of their own. A step of the Eidetic 3D LSTM also reads the cells of all steps
// before it.
//
// With `in_parts` a step is its products, gates and elementwise parts (core/plan/cell_parts.h), backward the same in
// reverse, and a weight-gradient task per parameter and step.
//
// Every task's time and output are divided among the tasks that replace it, and their sums are its own (times to
// rounding). What a step keeps for backward lives from the step to the last of its gradients. Gradients of weights
// accumulate in place: the buffer is made by the first step that has one and lives until the update. All tasks of an
// operator with parameters stay co-located.
#pragma once

#include "core/plan/training_graph.h"

namespace turnpoint {

/// Tasks that unrolling may lead to, and edges.
inline constexpr std::size_t kMaxUnrolledTasks = std::size_t(1) << 24;
inline constexpr std::size_t kMaxUnrolledEdges = std::size_t(1) << 26;

/// `whole` is a training graph of the scenario's model. Usage error where more tasks or edges than the bounds result.
Expected<TrainingGraph> unroll_steps(const TrainingGraph& whole, const Scenario& scenario, bool in_parts);

}  // namespace turnpoint
