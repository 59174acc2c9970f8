// SPDX-License-Identifier: Apache-2.0
// One rank's share of one ParameterSet: its weights, their gradient and the optimizer state, whole or a shard.
//
// The set is one run of elements, parameter after parameter. A sharded update cuts it into equal pieces (the last ones
// shorter) along the plan's own steps: a reduce-scatter or slice over some axes leaves the piece of this rank's
// position among them.
#pragma once

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/program.h"
#include "gpu_probe/step/report.h"
#include "gpu_probe/step/values/drawn.h"

namespace turnpoint::step {

class ParameterShare {
 public:
  ParameterShare(const Program& program, OperatorId op, const ParameterSet& set, Communicator& communicator,
                 StepReport& report);

  void begin();              ///< of a step
  void begin_micro_batch();  ///< and of each micro-batch of it
  /// Of weights that the update before left in shards (WeightGather), once a step: makes them whole.
  Expected<void> gather_first();
  /// The weights of the inputs in `wanted` (others stay null), gathered where they are sharded. `unlisted`: by a
  /// gather that the plan does not list.
  Expected<void> read(const std::vector<bool>& wanted, bool unlisted, std::vector<Value>& weights);
  /// Room for the gradient of an input where it is summed anyway, if it is the first of this step; else null.
  Value gradient_target(std::uint32_t input);
  /// Adds to the gradient of an input, in this rank's block; nothing where this rank is not to add (see Way::meets).
  /// `own`: nobody else holds its numbers, so that the first becomes the sum. `seconds`: to which the time is added.
  void add_gradient(std::uint32_t input, const Value& gradient, bool own, double& seconds);
  /// Sums the gradient as the plan says and keeps what this rank updates; called behind every micro-batch. Gradients
  /// that are kept whole are summed behind the `last` one.
  Expected<void> synchronise(bool last);
  /// The update, in `seconds`, and the way of the new weights to all that hold them.
  Expected<void> update(double& seconds);
  void end() { gradient_.reset(); }  ///< of a step: nobody needs the gradient any more
  void record(std::vector<Recorded>& out, Compared kind) const;

 private:
  struct Span {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const { return end - begin; }
  };
  std::int64_t padded(const Region& region) const;  ///< elements with what fills up shards
  std::int64_t filled() const;                      ///< elements of the run without that
  Span within(Span part, std::size_t p) const;      ///< what of a part of the run is real numbers of an input
  void clear_padding(Array& run, Span held) const;
  Span piece_of(int rank) const;  ///< after all steps that cut
  Span cut(Span from, int position, int parts) const;
  Expected<void> gather(const ReshardStep* step, const std::vector<Span>& wanted, Array& all, std::int64_t& received);
  std::int64_t length() const { return starts_.back(); }
  std::size_t place_of(std::uint32_t input) const;
  bool sharded_weights() const;
  bool gathers_first() const;
  Expected<void> spread();  ///< the new weights to all that hold them
  bool sharded_gradient() const;
  /// A micro-batch's gradient has a run of its own, which is there for the moment.
  bool passes() const;
  void generate();
  void draw_run(Span part, DrawnFor what, Place to) const;
  void draw_run(Span part, DrawnFor what, double* to) const;
  bool draws_state_late() const;
  void update_by_parts(ConstPlace gradient, Place weights);
  Expected<void> update_layer_wise(ConstPlace gradient, Place own, double& seconds);
  // Of Adafactor (factored.cpp).
  struct Factors {
    std::vector<double> rows;     ///< means of squares: a row's of the whole parameter; an own element's of a vector
    std::vector<double> columns;  ///< of a matrix alone
  };
  const Shape& shape_of(std::size_t p) const;
  bool is_matrix(std::size_t p) const;
  void draw_factors();
  template <class Visit>
  void for_each_of_mine(std::size_t p, ConstPlace gradient, const Visit& visit) const;
  Expected<void> blend_factors(ConstPlace gradient, double& seconds);
  Expected<void> update_factored(ConstPlace gradient, Place own, double& seconds);
  /// Sums over all ranks that hold the other parts of these parameters; the same on all of them.
  Expected<std::vector<double>> sum_over_parts(std::vector<double> sums, double& seconds);
  void generate_quickly();
  std::string where(const char* what) const;
  Traffic& traffic(const char* what, const ReshardStep& step, std::size_t index);
  void count_gather(const std::vector<std::size_t>& places, double bytes, const Moment& since);
  void tell_seconds(const Moment& since);
  Block& whole_gradient();

  const Program& program_;
  OperatorId op_;
  const ParameterSet& set_;
  Communicator& communicator_;
  StepReport& report_;
  std::vector<Region> regions_;       ///< per input of the set
  std::vector<std::int64_t> starts_;  ///< of each in the run, padding included, and its length at the end
  Span mine_;                         ///< what this rank updates
  Value weights_;                     ///< a run; of sharded weights the own piece
  Value gradient_;                    ///< from backward to the update: a run, or the own piece of it
  Value passing_;                     ///< a micro-batch's run before it is scattered
  Value first_, second_;              ///< optimizer state of the own piece
  Array master_;                      ///< its weights whole, where tensors are kept in less
  std::vector<Factors> factors_;      ///< per input of the set: what Adafactor keeps, next to nothing
  // Within a step:
  std::vector<bool> touched_;                 ///< per input of the set: its gradient has begun
  std::vector<std::size_t> reads_;            ///< per input: listed gathers so far
  std::vector<std::int64_t> gather_traffic_;  ///< per listed gather: index into report_.traffic, or -1
};

}  // namespace turnpoint::step
