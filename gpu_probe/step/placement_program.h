// SPDX-License-Identifier: Apache-2.0
// A placement made ready for execution: which tensors every task reads and makes, and which of them every transfer has
// to carry.
//
// All of it follows from the model and from what the tasks are, worked out here a second time; of the placement only
// devices, orders and the list of transfers are taken. A tensor that a task on another device reads and that no listed
// transfer brings is an error, so a task graph that forgets an edge is found out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/probe/step_job.h"
#include "gpu_probe/step/placement_pieces.h"
#include "gpu_probe/step/program.h"

namespace turnpoint::step {

/// Numbers that one task makes and others read; of a time step its part.
struct PlacedItem {
  enum class What : std::uint8_t {
    output,           ///< output `slot` of `op`
    gradient,         ///< of `tensor`, as `op` makes it, one of its readers
    weights,          ///< input `slot` of `op`, which owns it
    weight_gradient,  ///< of input `slot` of `op`, one of its readers; of time steps the sum up to this one
    cell,             ///< the state beside its output that a step hands to the next
    hidden_gradient,  ///< of the output, from a step to the one before
    cell_gradient,
    gates_gradient,  ///< of a recurrent operator, for the gradient of its weights (GateGradients)
  };
  What what = What::output;
  OperatorId op;
  std::uint32_t slot = 0;
  TensorId tensor;  ///< one that is stored: no view; a gradient that a time step makes: see PlacedGradient
  Region part;
  TaskIndex maker = kNone;
};

/// The gradient of a tensor as one of its readers makes it. Of time steps it stays on the reader's side of views that
/// do not keep the step's part a block.
struct PlacedGradient {
  OperatorId reader;
  TensorId tensor;
  std::vector<OperatorId> views;     ///< between what is stored and `tensor`, nearest to what is stored first
  std::vector<std::uint32_t> items;  ///< by piece of the reader
};

struct PlacedTask {
  std::vector<std::uint32_t> reads, makes;  ///< items
  std::vector<std::uint32_t> sends;         ///< transfers, by rising device
  std::size_t piece = 0;                    ///< of its operator
};

struct PlacedTransfer {
  TaskIndex task = kNone;
  int from = 0, to = 0;
  std::vector<std::uint32_t> items;
  std::int64_t elements = 0;  ///< of all items
};

struct PieceTasks {
  TaskIndex forward = kNone, backward = kNone, weights = kNone;
};
struct OperatorTasks {
  Stepping stepping;
  std::vector<PieceTasks> pieces;  ///< one of an operator that runs as a whole
  TaskIndex update = kNone;
  TaskIndex weights = kNone;  ///< holds the parameters; kNone: the update does
};

/// What tasks of an operator hand to each other, to its weights' update and from them, as items. kNone: nothing.
struct InnerItems {
  std::vector<std::vector<std::uint32_t>> weights;           ///< [input][direction]; none: not its own, or not sent
  std::vector<std::vector<std::uint32_t>> weight_gradients;  ///< [input][piece]; none: no parameter
  /// Of a recurrent operator, [piece].
  std::vector<std::uint32_t> cell, hidden_gradient, cell_gradient, gates_gradient;
};
/// Whose a parameter is, which of its inputs, and whether it is read as the transpose of what that stores.
struct WeightOwner {
  OperatorId op;
  std::uint32_t input = 0;
  bool turned = false;
};
/// Who reads a parameter: its owner, or an operator tied to that.
struct WeightReader {
  OperatorId op;
  std::uint32_t input = 0, owner_input = 0;
  bool turned = false;  ///< reads the transpose
};

/// Immutable; shared by the threads of all ranks. The job's model and placement must outlive it.
struct PlacedProgram {
  std::shared_ptr<const Program> program;  ///< of the model on one device
  const StepPlacement* placement = nullptr;
  std::vector<PlacedItem> items;
  std::vector<PlacedTask> tasks;
  std::vector<PlacedTransfer> transfers;                         ///< parallel to the placement's
  std::vector<OperatorTasks> tasks_of;                           ///< [operator]
  std::vector<std::vector<std::size_t>> unseen;                  ///< [operator][input]: Sight::unseen of all its pieces
  std::vector<std::vector<std::vector<std::uint32_t>>> outputs;  ///< [operator][output][piece]: item
  std::vector<std::map<TensorId, std::size_t>> gives;  ///< [operator]: of PlacedGradient::tensor: into `given`
  std::vector<PlacedGradient> given;
  std::vector<InnerItems> inner;                           ///< [operator]
  std::vector<std::vector<WeightReader>> readers;          ///< [operator that owns parameters]
  bool weights_travel = false;                             ///< else they are read where they are held, and nowhere else
  std::map<TensorId, std::vector<std::size_t>> gradients;  ///< of a stored tensor: into `given`, later readers first
  std::vector<std::vector<std::uint32_t>> arrivals;        ///< [to * devices + from]: transfers as `from` sends them
  /// One line through all transfers, the same on every rank: whoever sends and receives in its order, and works off the
  /// tasks that stand before, never waits in a circle. About as they come if devices do their work at one speed.
  std::vector<std::uint32_t> transfer_order;

  /// How a piece of an operator sees what one of its inputs reads: through views as far as all its pieces can.
  Sight sight(OperatorId op, std::size_t input, std::size_t piece) const;

  /// The piece that has the sum of a direction's gradients of weights in the end.
  bool has_sum(OperatorId op, std::size_t piece) const { return !tasks_of[op.index].stepping.before(piece); }
  /// The piece whose sum of gradients of weights this one goes on with; nothing: it begins.
  std::optional<std::size_t> adds_to(OperatorId op, std::size_t piece) const;
  WeightOwner owner_of(OperatorId op, std::uint32_t input) const;

  /// Errors: micro-batches, steps that an operator does not have, a parameter that is not trained, weights that are
  /// read where they are not, a missing task or transfer, orders that wait for each other.
  static Expected<std::shared_ptr<const PlacedProgram>> make(const StepJob& job, const StepOptions& options);
};

/// Whether the gradient of what this access reads goes back to whoever made it.
bool returns_gradient(const Model& model, const Access& access);
bool reads_parameter(const Model& model, const Access& access);
/// Whether some parameter of the operator is trained.
bool trains(const Model& model, const Operator& op);

/// All items, and which of them every task reads; `program` has its tasks. Error: reads two parts of one tensor.
Expected<void> add_items(PlacedProgram& program);

}  // namespace turnpoint::step
