// SPDX-License-Identifier: Apache-2.0
// Recurrent operators of a training graph as their time steps, as frameworks that unroll them run them.
//
// A forward step reads the step before it and what the layer below made for it; backward steps run the other way
// round. A layer that works step by step itself (the next recurrent operator, or an elementwise operator or
// concatenation between two) follows step by step; everything else waits for all steps and feeds all. Both directions
// of a bidirectional operator have steps of their own. A step of the Eidetic 3D LSTM also reads the cells of all steps
// before it.
//
// With `in_parts` a step is its products, gates and elementwise parts (core/schedule/cell_parts.h), backward the same
// in reverse, and a weight-gradient task per parameter and step.
//
// Every task's time and output are divided among the tasks that replace it, and their sums are its own (times to
// rounding). Where the hardware profile has a fit of the operator's kind, each of them also takes what the fit says that
// a call costs however little work it has: so the efficiency of a step is that of its size. Only of the gradient of what
// both directions of an operator read each makes a summand as large as all of it. What a step keeps for backward lives from the step to the last of its gradients.
//
// Steps need not share a device. A step reads the weights of its direction from the operator's task `:weights`, each
// device once. Backward of a step reads what the step kept and the state that the step began with, and hands the
// gradients of its gates to the gradient of its weights, which also reads the layer's input and the output of the step
// before. The gradients of weights are a running sum, as training_graph.h has it, from the last step to the first,
// which hands it to the update. Parts of one step, forward, share a device, and so do those backward: their gates are
// one buffer. With `kept_gradients` each step hands its own gradients to the update instead; adding them takes no time
// of its own. With `whole_layers` all of an operator stays on one device, and its steps add to one buffer, which is
// made by the first step that has a gradient and lives until the update.
//
// Node counts of the ParDNN study (resources/manual/mathematics.md, 2.4), with whole layers; else there is one task
// more for each operator that owns parameters. Theirs are TensorFlow's nodes: beside what computes, shapes, constants,
// identities, initialisers and savers, which take no time and are no tasks here. The same size is reached with the
// study's steps, in parts where that comes within a tenth, and so many micro-batches as come closest:
//
//   model        study   reached          steps        micro-batches
//   word-rnn     11,744   12,054  +2.6 %  28, whole    14
//   word-rnn-2   10,578   10,838  +2.5 %  25, parts    2
//   char-crn     22,748   22,971  +1.0 %  35, parts    3
//   char-crn-2   86,663   91,083  +5.1 %  35, parts    3
//   wrn         187,742  188,790  +0.6 %  none         31
//   wrn-2        79,742   78,780  -1.2 %  none         26
//   trn          80,550   81,292  +0.9 %  none         34
//   trn-2       160,518  162,076  +1.0 %  none         34
//   e3d, e3d-2   55,756   58,604  +5.1 %  19, parts    4
#pragma once

#include "core/schedule/training_graph.h"

namespace turnpoint {

/// Tasks that unrolling may lead to, and edges.
inline constexpr std::size_t kMaxUnrolledTasks = std::size_t(1) << 24;
inline constexpr std::size_t kMaxUnrolledEdges = std::size_t(1) << 26;

/// `whole` is a training graph of the scenario's model, made with the same options. Usage error where more tasks or
/// edges than the bounds result.
Expected<TrainingGraph> unroll_steps(const TrainingGraph& whole, const Scenario& scenario,
                                     const TrainingGraphOptions& options);

/// TaskGraph::out_tensor in training graphs, where a task makes several: the gradients of states that a time step
/// hands to the one before, those of its gates, and from the third on those of the parameters of each operator.
/// Gradients of what was read have lower ones.
inline constexpr std::uint32_t kStateGradient = (1u << 30) - 2, kGatesGradient = (1u << 30) - 1,
                               kParameterGradient = 1u << 30;

}  // namespace turnpoint
