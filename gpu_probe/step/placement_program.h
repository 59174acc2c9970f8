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
#include <vector>

#include "core/plan/step_job.h"
#include "gpu_probe/step/program.h"

namespace turnpoint::step::TURNPOINT_REAL {

/// A whole tensor that one task makes and others read.
struct PlacedItem {
  bool gradient = false;  ///< of `tensor`, as `op` makes it, one of its readers; else output `slot` of `op`
  OperatorId op;
  std::uint32_t slot = 0;
  TensorId tensor;  ///< one that is stored: no view
  TaskIndex maker = kNone;
};

struct PlacedTask {
  std::vector<std::uint32_t> reads, makes;  ///< items
  std::vector<std::uint32_t> sends;         ///< transfers, by rising device
};

struct PlacedTransfer {
  TaskIndex task = kNone;
  int from = 0, to = 0;
  std::vector<std::uint32_t> items;
  std::int64_t elements = 0;  ///< of all items
};

struct OperatorTasks {
  TaskIndex forward = kNone, backward = kNone, weights = kNone, update = kNone;
};

/// Immutable; shared by the threads of all ranks. The job's model and placement must outlive it.
struct PlacedProgram {
  std::shared_ptr<const Program> program;  ///< of the model on one device
  const StepPlacement* placement = nullptr;
  std::vector<PlacedItem> items;
  std::vector<PlacedTask> tasks;
  std::vector<PlacedTransfer> transfers;                 ///< parallel to the placement's
  std::vector<OperatorTasks> tasks_of;                   ///< [operator]
  std::vector<std::vector<std::uint32_t>> outputs;       ///< [operator][output]: item
  std::vector<std::map<TensorId, std::uint32_t>> gives;  ///< [operator]: item of the gradient of each tensor it reads
  std::map<TensorId, std::vector<std::uint32_t>> gradients;  ///< of a stored tensor: items, later readers first
  std::vector<std::vector<std::uint32_t>> arrivals;          ///< [to * devices + from]: transfers as `from` sends them

  /// Errors: recurrent operators placed step by step, micro-batches, a parameter that is not trained, weights that are
  /// read where they are not, a missing task or transfer, orders that wait for each other.
  static Expected<std::shared_ptr<const PlacedProgram>> make(const StepJob& job, const StepOptions& options);
};

/// The views between what is stored and what is read, nearest to the stored tensor first.
std::vector<OperatorId> views_before(const Model& model, TensorId read);
/// Whether the gradient of what this access reads goes back to whoever made it.
bool returns_gradient(const Model& model, const Access& access);

}  // namespace turnpoint::step::TURNPOINT_REAL
