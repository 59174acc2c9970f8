// SPDX-License-Identifier: Apache-2.0
// One device's part of a placed step: its tasks whole, one after the other in the placement's order, each once what it
// reads is there.
//
// What is held follows the simulator's rules (design.md 8.4): what a task makes is there from its start until the last
// task here that reads of it has ended, and to the end of the step where nobody reads it anywhere; what arrives, until
// its last reader here has ended.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/parameters.h"
#include "gpu_probe/step/placement_board.h"
#include "gpu_probe/step/placement_program.h"
#include "gpu_probe/step/report.h"

namespace turnpoint::step::TURNPOINT_REAL {

/// How large a board must be for a program.
PlacementBoard::Shape board_shape(const PlacedProgram& program, std::size_t results);

class PlacedRank {
 public:
  PlacedRank(const PlacedProgram& program, PlacementBoard& board, int rank);

  /// One whole step, the `step`th (1, 2, ...) of all ranks; the next one goes on with its weights. Ranks must meet
  /// between steps.
  Expected<void> run(std::uint64_t step);

  StepReport& report() { return report_; }
  /// Of the last step: seconds of each task that runs here, without waiting; of each transfer, what this side of it
  /// took, and bytes that arrived here.
  const std::vector<double>& task_seconds() const { return task_s_; }
  const std::vector<double>& transfer_seconds() const { return transfer_s_; }
  const std::vector<double>& received_bytes() const { return received_; }

 private:
  using Values = std::vector<Value>;

  const Model& model() const { return *program_.program->model; }
  const Operator& op_of(OperatorId id) const { return model().operators[id]; }
  const Tensor& tensor_of(const Access& access) const { return model().tensors[access.tensor]; }
  const OperatorProgram& program_of(OperatorId id) const { return program_.program->operators[id.index]; }
  const StepOptions& options() const { return program_.program->options; }
  bool fast() const;
  bool is_here(TaskIndex task) const;

  void begin();
  Expected<void> take_in(std::uint64_t step, std::uint32_t transfer);
  Expected<void> take_in_what_is_there(std::uint64_t step);
  Expected<void> wait_for_inputs(TaskIndex task, std::uint64_t step);
  void send(TaskIndex task, std::uint64_t step);
  void release_after(TaskIndex task);

  Expected<void> run_task(TaskIndex task);
  Expected<void> forward(OperatorId id);
  Expected<void> backward(OperatorId id, bool inputs, bool weights);
  Expected<void> update(OperatorId id);

  Value make(const Tensor& tensor);
  Value make_clear(const Tensor& tensor);
  Value generated(TensorId id);
  LocalOperator local(OperatorId id) const;
  Expected<Value> input_value(const Access& access);
  Expected<Value> seen(OperatorId view, const Value& value);
  Expected<Value> pulled_back(const std::vector<OperatorId>& views, Value gradient);
  void read_weights(OperatorId id, bool backward_only, Values& values);
  Expected<void> add_loss(OperatorId id, std::size_t output, const Value& value);
  Expected<Value> output_gradient(OperatorId id, std::size_t output);
  const Array& loss_factors(TensorId id);
  Value weight_gradient(OperatorId id, std::uint32_t k);
  void give_weight_gradient(OperatorId id, std::size_t k, Value gradient);
  void record(Compared kind, OperatorId op, std::uint32_t slot, const Block& block);

  const PlacedProgram& program_;
  PlacementBoard& board_;
  int rank_;
  std::unique_ptr<Communicator> alone_;  ///< parameters lie whole: nobody to talk to
  StepReport report_;
  std::vector<std::vector<ParameterShare>> shares_;  ///< [operator]: those updated here
  std::map<TensorId, Array> data_, loss_factors_;    ///< the same in every step
  // Within a step:
  Values items_;                           ///< [item]: made here, or arrived
  std::vector<int> readers_left_;          ///< [task]: tasks here that are still to read of what it made
  std::map<OperatorId, Values> sums_;      ///< gradients of outputs, summed once for both halves of a backward
  std::map<OperatorId, Values> old_;       ///< weights as they were before an update that came before their last reader
  std::vector<int> weight_readers_left_;   ///< [operator]: tasks here that are still to read its parameters
  std::vector<std::size_t> arrived_from_;  ///< [rank]: transfers taken in, in the order in which it sends them
  std::vector<double> task_s_, transfer_s_, received_;
  std::vector<int> all_readers_;  ///< [task]: tasks anywhere that read of what it makes
};

}  // namespace turnpoint::step::TURNPOINT_REAL
