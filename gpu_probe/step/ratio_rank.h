// SPDX-License-Identifier: Apache-2.0
// One rank's training step of a ratio plan: forward, backward with every gradient's way back, sums of the gradients of
// weights, update. What it computes on are its own ranges alone; what it lacks of a tensor comes by the program's
// messages and by nothing else.
#pragma once

#include <map>
#include <memory>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/ratio_keeping.h"
#include "gpu_probe/step/ratio_program.h"
#include "gpu_probe/step/report.h"

namespace turnpoint::step {

/// What came here of one of RatioProgram::lines.
struct RatioTraffic {
  std::int64_t fresh = 0, all = 0;  ///< elements
  double seconds = 0;               ///< packing and unpacking included
};

class RatioRank {
 public:
  /// `slowness`: how many times as long as it takes it is to compute, 1 or more; it waits busily for the rest.
  RatioRank(const RatioProgram& program, Communicator& communicator, double slowness = 1);

  /// One whole step; the next one goes on with its weights. Error: an operator's, or that another rank gave up.
  Expected<void> run();
  StepReport& report() { return report_; }
  const std::vector<RatioTraffic>& traffic() const { return traffic_; }

 private:
  using Values = std::vector<Value>;
  struct Weight {
    Value weight, gradient, first, second;
    bool touched = false;  ///< its gradient has begun
    /// Of Adafactor: means of squares of all rows of a matrix; of a vector of what is updated here.
    std::vector<double> rows, columns;
  };
  /// What this rank updates of a parameter: elements of a block of it, which it holds.
  struct Piece {
    std::size_t weight = 0;
    const SharedUpdate* run = nullptr;  ///< null: nobody else updates a part of the block
    Region block;
    std::int64_t first = 0;  ///< of the block's elements, row-major
    std::size_t count = 0;
    std::size_t state = 0;  ///< where its states begin
    Value gradient, held;   ///< its elements; the block's weights
    Array step = {};        ///< of updates that take norms, what would come off its weights
  };

  const Model& model() const { return *program_.model; }
  const StepOptions& options() const { return program_.options; }
  const Operator& op_of(OperatorId id) const { return model().operators[id]; }
  const RatioOperator& program_of(OperatorId id) const { return program_.operators[id.index]; }
  const Tensor& tensor_of(const Access& access) const { return model().tensors[access.tensor]; }
  const Region& part(const RatioLie& lie) const { return lie.part[leaf_]; }
  bool fast() const { return !arithmetic().proves() && !options().plain; }
  LocalOperator local(OperatorId id) const;

  void draw(Weight& weight, const RatioWeight& of);
  Value make(const Tensor& tensor, const Region& region);
  Value generated(TensorId id, const Region& region);
  const Array& loss_factors(TensorId result, const Region& region);

  Expected<void> forward(OperatorId id);
  Expected<Values> compute(OperatorId id, StepPhase phase);
  Expected<void> publish(OperatorId id, Values outputs);
  Expected<void> restore(OperatorId id);
  Expected<void> run_again(OperatorId id);
  Expected<void> read_weights(OperatorId id, bool backward, Values& values);
  void add_loss(const RatioFlow& flow, const RatioLie& made, const Block& value);
  Expected<void> backward(OperatorId id);
  Expected<Value> output_gradient(const RatioFlow& flow, const RatioLie& made);
  Expected<void> take_gradient(OperatorId id, std::size_t k, Value gradient);
  Expected<void> update();
  /// Sums the weight's gradient and appends what is to be updated here.
  Expected<void> reduce(std::size_t number, std::vector<Piece>& pieces);
  Expected<void> reduce_shards(std::size_t number, std::vector<Piece>& pieces);
  /// `gradient` and `tied`: of all of the weight here; `state`: where the shard's states begin.
  Expected<Piece> reduce_shard(std::size_t number, const SharedUpdate& run, Value gradient, const Values& tied,
                               std::size_t state);
  void step_by(Piece& piece);            ///< elementwise
  Expected<void> hand_on(Piece& piece);  ///< new weights of a shard, to all that hold the block
  void end_update(std::size_t number);   ///< of a weight all of whose pieces are done
  ConstPlace gradient_of(const Piece& piece) const { return piece.gradient->data.data(); }
  Place own_of(Piece& piece) const { return piece.held->data.data() + piece.first; }
  Place state_of(const Piece& piece, const Value& states) const;
  // Of updates that take norms (ratio_norms.cpp).
  const Shape& shape_of(const RatioWeight& of) const { return tensor_of(op_of(of.op).inputs[of.input]).shape; }
  void draw_factors(Weight& weight, const RatioWeight& of, const std::vector<std::pair<Region, Region>>& updated);
  /// Whether of all ranks that update these elements it is this one whose sums count.
  bool counts(const Piece& piece) const;
  Expected<void> sum_over_ranks(std::vector<double>& sums);
  template <class Visit>
  void for_each_of(const Piece& piece, const Visit& visit) const;
  Expected<void> step_layer_wise(std::vector<Piece>& pieces);
  Expected<void> blend_factors(const std::vector<Piece>& pieces);
  Expected<void> step_factored(std::vector<Piece>& pieces);
  /// A block of a value as a run of elements; the value itself where it is that block.
  Value run_of(Value value, const Region& block);

  /// To `wanted` of the tensor, by a way's messages, if it has any. A value that is there already is not copied.
  Expected<Value> carry(const RatioWay& way, Value value, const Region& wanted);
  Expected<void> exchange(const std::vector<RatioMessage>& messages, Block& room, RatioTraffic& traffic);
  void record(Compared kind, OperatorId op, std::uint32_t slot, const Block& block, std::uint32_t partial = 0);

  /// Adds what passes until it goes to an operator's phase, and makes it pass more slowly on a slow rank.
  class Stopwatch {
   public:
    Stopwatch(RatioRank& rank, OperatorId id, StepPhase phase);
    ~Stopwatch();

   private:
    RatioRank& rank_;
    double* sum_;
    Moment since_;
  };

  const RatioProgram& program_;
  Communicator& communicator_;
  const double slowness_;
  const std::uint32_t me_, leaf_;
  const std::vector<std::uint32_t> path_;
  const RatioKeeping keeping_;
  std::size_t backward_to_ = 0;  ///< the operator that backward is at; those behind it are done
  StepReport report_;
  std::vector<RatioTraffic> traffic_;  ///< by line
  std::vector<Weight> weights_;
  Values tied_;                          ///< [tie]: the copy that is read, from forward on
  std::vector<Values> tied_gradients_;   ///< [weight]: summed already, from uses that lie otherwise
  std::vector<Values> inputs_;           ///< [operator][input], from its producer until its last reading
  std::vector<Values> kept_outputs_;     ///< [operator][output], what backward reads
  std::vector<Values> input_gradients_;  ///< [operator][input], until the producer's backward
  std::map<std::pair<TensorId, Shape>, Array> data_, loss_factors_;  ///< the same in every step
};

}  // namespace turnpoint::step
