// SPDX-License-Identifier: Apache-2.0
// One device's part of a placed step: its tasks, one after the other in the placement's order, each once what it reads
// is there.
//
// What is held follows the simulator's rules (resources/manual/simulator.md, rule 4): what a task makes is there from
// its start until the last task here that reads of it has ended, and to the end of the step where nobody reads it
// anywhere; what arrives, until its last reader here has ended.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/parameters.h"
#include "gpu_probe/step/placement_links.h"
#include "gpu_probe/step/placement_program.h"
#include "gpu_probe/step/report.h"

namespace turnpoint::step {

class PlacedRank {
 public:
  PlacedRank(const PlacedProgram& program, PlacementLinks& links);

  /// One whole step, the `step`th (1, 2, ...) of all ranks; the next one goes on with its weights. Ranks must meet
  /// between steps.
  Expected<void> run(std::uint64_t step);

  StepReport& report() { return report_; }
  /// Of the last step: seconds of each task that runs here, without waiting; of each transfer, what it took here to
  /// hand it over or to take it in, and bytes that arrived.
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
  Expected<void> take_in(std::uint32_t transfer);
  Expected<void> take_in_what_is_there();
  Expected<void> wait_for_inputs(TaskIndex task);
  Expected<void> send(TaskIndex task);
  void release_after(TaskIndex task);

  /// A task's operator, and which piece of it.
  struct Piece {
    OperatorId op;
    std::size_t number = 0;
    friend auto operator<=>(const Piece&, const Piece&) = default;
  };
  const OperatorTasks& tasks_of(OperatorId id) const { return program_.tasks_of[id.index]; }
  bool stepwise(OperatorId id) const { return tasks_of(id).stepping.steps > 0; }

  Expected<void> run_task(TaskIndex task);
  Expected<void> forward(Piece piece);
  Expected<void> backward(Piece piece, bool inputs, bool weights);
  Expected<void> update(OperatorId id);

  Expected<void> give(Piece piece, std::size_t input, Value gradient);
  Expected<Values*> output_gradients(Piece piece);
  void hold_weights(OperatorId id);
  void keep_weights_as_they_were(OperatorId id);
  Value held_weight(OperatorId owner, std::uint32_t input);
  void read_weights(Piece piece, bool backward_only, Values& values);
  /// Of a time step: what it begins with, forward; for backward and gradients of weights as far as they read it.
  CellState state_before(Piece piece);
  CellState state_behind(Piece piece);
  void leave(std::uint32_t item, const Array& state);
  Value room_for_gates(std::uint32_t item);
  Value room_for_sum(std::uint32_t item);
  Value weight_gradient(Piece piece, std::uint32_t k);
  void add_up(OperatorId owner, const WeightReader& reader);

  Value make(const Tensor& tensor, const Region& part);
  Value make_clear(const Tensor& tensor, const Region& part);
  Value generated(TensorId id);
  LocalOperator local(Piece piece) const;
  Expected<Value> input_value(Piece piece, std::size_t input);
  /// A part of a tensor of which these items hold something; where one holds just that, itself.
  Value put_together(const Tensor& tensor, const std::vector<std::uint32_t>& items, const Region& part);
  Value cut(const Tensor& tensor, const Value& value, const Region& part);
  Expected<Value> seen(OperatorId view, const Value& value, const Region& part);
  /// The gradient of what the first of these views read from that of what the last one made.
  Expected<Value> pulled_back(std::span<const OperatorId> views, Value gradient);
  Expected<Value> output_gradient(Piece piece, std::size_t output);
  Expected<void> add_loss(Piece piece, std::size_t output, const Value& value);
  /// How much each element of a stored tensor counts in the loss, being seen as this result of the network.
  Expected<Value> loss_factors(TensorId result);
  void record(Compared kind, OperatorId op, std::uint32_t slot, const Block& block);

  const PlacedProgram& program_;
  PlacementLinks& links_;
  int rank_;
  std::unique_ptr<Communicator> alone_;  ///< parameters lie whole: nobody to talk to
  StepReport report_;
  std::vector<std::vector<ParameterShare>> shares_;  ///< [operator]: those updated here
  std::map<TensorId, Array> data_;                   ///< the same in every step
  std::map<TensorId, Value> loss_factors_;           ///< likewise
  // Within a step:
  Values items_;                   ///< [item]: made here, or arrived
  std::vector<char> done_;         ///< [task]
  std::vector<int> readers_left_;  ///< [task]: tasks here that are still to read of what it made
  std::map<Piece, Values> sums_;   ///< gradients of outputs, for both halves of a backward
  /// [operator, input]: where the gradient that is updated is, and whose it is to begin with.
  std::map<std::pair<OperatorId, std::uint32_t>, std::pair<Value, OperatorId>> targets_;
  std::map<OperatorId, Values> old_;       ///< weights as they were before an update that came before their last reader
  std::vector<int> weight_readers_left_;   ///< [operator]: tasks here that are still to read its parameters
  std::vector<std::size_t> arrived_from_;  ///< [rank]: transfers taken in, in the order in which it sends them
  std::vector<double> task_s_, transfer_s_, received_;
  std::vector<int> all_readers_;  ///< [task]: tasks anywhere that read of what it makes
};

}  // namespace turnpoint::step
