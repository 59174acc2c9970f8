// SPDX-License-Identifier: Apache-2.0
// A Model becomes the task graph of one training iteration: what placement methods place and the simulator runs.
//
// Per operator (views and parameters are no tasks): a forward task; a backward task, or, for products, convolutions and
// recurrent cells with weights, one for the gradient of its inputs and one for that of its weights; an update task
// where it owns parameters. Times are those of the one evaluator on one device (core/cost), so that their sum is the
// additive time of the single-device plan; the two halves of a backward share its time equally, since their products
// are equally large. With several micro-batches everything but the updates is there once per micro-batch, and gradients
// of the second and later ones are added to the first's by accumulation tasks (two reads and a write of the gradient).
//
// Bytes: a task's output is all it makes, with what its own backward keeps inside (gates, masks); an edge carries the
// part that its consumer reads. Forward and backward tasks have the scope of their operator.
//
// Weights: an operator that owns parameters has a task `:weights` without time, which holds them and their optimizer
// state from the start and is co-located with their update, and with nothing else. Whatever reads them reads them over
// an edge, so a device that does not hold them is sent them once a step (resources/manual/simulator.md, rule 2) and
// keeps the copy until its last reader there has ended. On their own device they are read where they are.
//
// Gradients of weights that several tasks make (micro-batches, and time steps, see unrolling.h) are a running sum: each
// task reads the sum so far and writes the next one, and the last one goes to the update. Where neighbours in that row
// share a device nothing is sent; so a device with a run of them sends one sum, to whoever goes on with it. That is
// what a task graph can say exactly before it is known who runs where. One accumulator on every device, all of which
// are sent to the update, would take as many transfers if every device has one run, or one fewer if the first of them
// is the update's. Operators that share a parameter each send their own sum.
//
// With `whole_layers` all tasks of an operator with parameters, and of operators tied to them, are co-located instead:
// there are no tasks `:weights`, weights and their gradients never travel, and gradients are added in place to the
// buffer of the first. What that costs: a network whose layers all stand on its longest path cannot be cut along it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/expected.h"
#include "core/base/ids.h"
#include "core/model/task_graph.h"
#include "core/model/task_role.h"
#include "core/model/training_graph_options.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Links and devices are those of the scenario's cluster under its what-if factors: a pair of devices of one node sends
/// over the inner links, others over the outer ones; every device has the scenario's memory limit. In a mixed cluster
/// times are those of the weakest device. Error: more micro-batches than kMaxMicroBatches or fewer than one.
Expected<TaskGraphPtr> training_graph(const Scenario& scenario, const TrainingGraphOptions& options = {});

/// The same with whose forward, backward or update each task is.
struct TrainingGraph {
  TaskGraphPtr graph;
  std::vector<OperatorId> operator_of;  ///< by task
  std::vector<TaskRole> role;           ///< by task
};
Expected<TrainingGraph> training_graph_of(const Scenario& scenario, const TrainingGraphOptions& options = {});
/// The same of a scenario whose batch is that of the whole iteration. Error: it cannot be cut into so many
/// micro-batches.
Expected<TrainingGraph> training_graph_of_batch(const Scenario& scenario, const TrainingGraphOptions& options);

}  // namespace turnpoint
