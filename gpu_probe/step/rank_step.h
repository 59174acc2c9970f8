// SPDX-License-Identifier: Apache-2.0
// One rank's training step: forward, backward with the plan's copies and reruns, gradient synchronisation, update.
//
// A tensor is brought from layout to layout by the plan's own steps and by nothing else. Backward has at its disposal
// what forward kept by the plan; anything else it can only compute again, where the plan says so. So a copy that is
// missing from the plan, or a sum over the wrong axes, shows as an error or as a wrong number.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "core/probe/step_job.h"
#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/parameters.h"
#include "gpu_probe/step/program.h"
#include "gpu_probe/step/report.h"
#include "gpu_probe/step/reshard.h"

namespace turnpoint::step {

class RankStep {
 public:
  RankStep(const Program& program, Communicator& communicator);

  /// One whole step; the next one goes on with its weights. Error: what about the plan cannot be executed, or that
  /// another rank gave up.
  Expected<void> run();
  StepReport& report() { return report_; }

 private:
  using Values = std::vector<Value>;

  const Operator& op_of(OperatorId id) const { return program_.model->operators[id]; }
  const OperatorProgram& program_of(OperatorId id) const { return program_.operators[id.index]; }
  const Tensor& tensor_of(const Access& access) const { return program_.model->tensors[access.tensor]; }
  int rank() const { return communicator_.rank(); }
  const Mesh& mesh() const { return program_.plan->mesh; }
  Value make(const Tensor& tensor, const Layout& layout);
  Value make_clear(const Tensor& tensor, const Layout& layout);
  LocalOperator local(OperatorId id);
  void begin();
  void begin_micro_batch();
  Expected<void> gather_first();
  bool last_micro_batch() const { return micro_batch_ + 1 == program_.options.micro_batches; }
  /// Of data and masks: each micro-batch has its own.
  std::uint64_t seed() const;
  void join_traffic();
  const Array& loss_factors(const Flow& flow, const Region& region);

  Expected<void> forward();
  Expected<void> forward_operator(OperatorId id);
  Expected<void> publish(OperatorId id, Values outputs);
  Expected<Value> follow(std::size_t number, std::size_t reader, Value value);
  Expected<Value> input_value(OperatorId id, std::size_t k);
  Expected<Values> compute(OperatorId id, const Values& inputs, StepPhase phase);
  Value seen_through(const LocalOperator& at, const Values& inputs);
  Value generated(const Tensor& tensor, TensorId id, const Layout& layout);

  Expected<void> backward();
  Expected<void> backward_operator(OperatorId id);
  Expected<void> repeat_what_is_listed(OperatorId id);
  Expected<Values> output_gradients(OperatorId id);
  Expected<void> send_gradient(OperatorId id, std::size_t k, Value gradient);
  Value gradient_target(OperatorId id, std::size_t k);
  Value gradient_seen_through(OperatorId id, const Values& gradients);
  Expected<void> compute_backward(OperatorId id, const Values& inputs, const Values& outputs, const Values& gradients,
                                  Values& results);
  bool adds(const Layout& meeting, const Way& way) const;
  double& backward_seconds(OperatorId id) { return report_.seconds[id.index][std::size_t(StepPhase::backward)]; }
  void release(OperatorId id);

  // What backward holds is freed as soon as nobody is to read it. When that is, the first step finds out: later ones do
  // the same in the same order.
  void used(Value& slot) {
    if (!learned_) last_use_[&slot] = tick_;
  }
  void used(Values& all) {
    if (!learned_) last_use_of_all_[&all] = tick_;
  }
  /// A computation of backward has ended, and its caller has let go of what it read; or a long resharding is to begin.
  void advance();
  void learn();  ///< at the end of the first backward

  // What backward reads, from copies or computed again (recall.cpp).
  Expected<Value> fetch(OperatorId id, std::size_t k);
  Expected<Value> produced(const Flow& flow, std::size_t number);
  Expected<Values> run_again(OperatorId id);
  Expected<Value> repeat(const Way& way, Value value, const Tensor& tensor, const std::string& where);

  Expected<void> read_weights(OperatorId id, bool backward_only, bool rerun, Values& weights);
  /// A resharding's steps of one role.
  Expected<Value> move(const PlanReshard& reshard, ReshardRole role, Layout from, const Tensor& tensor, Value value,
                       const std::string& where);
  static Value turned(Ledger& ledger, const Value& value);
  void add_loss(const Flow& flow, const Block& value);
  void record(Compared kind, OperatorId op, std::uint32_t slot, const Block& block, std::uint32_t partial);

  /// Adds what passes until it goes to an operator's phase, without exchanges inside the operator.
  class Stopwatch {
   public:
    Stopwatch(RankStep& step, OperatorId id, StepPhase phase);
    ~Stopwatch();

   private:
    RankStep& step_;
    double *sum_, *before_;
    Moment since_;
  };
  bool fast() const;

  const Program& program_;
  Communicator& communicator_;
  StepReport report_;
  double* running_ = nullptr;  ///< to which time is added now; exchanges inside of operators are taken off
  /// What is the same in every step: data by tensor and layout, how much elements count in the loss.
  std::map<std::tuple<int, TensorId, Layout>, Array> data_;  ///< first: the micro-batch
  std::map<std::pair<TensorId, Shape>, Array> loss_factors_;
  Mover mover_;
  int micro_batch_ = 0;
  std::vector<std::size_t> first_traffic_;  ///< [micro-batch]: its first line in the report, until they are joined
  std::vector<std::vector<ParameterShare>> shares_;  ///< [operator]
  std::vector<Value> live_;          ///< [flow]: where forward's readers take it from, until the last has read it
  std::vector<std::size_t> unread_;  ///< [flow]: readers to come
  // Kept for backward.
  std::vector<Value> kept_source_, kept_shared_;  ///< [flow]
  std::vector<Values> kept_copy_;                 ///< [flow][consumer]
  std::vector<Values> kept_internal_;             ///< [operator][output]
  std::vector<Value> kept_tie_;                   ///< [tie]
  // During backward.
  std::vector<Value> gradient_;                 ///< [flow], in its meeting layout
  std::vector<Values> fetched_, again_;         ///< [operator][input], [operator][output]
  std::vector<Values> rerun_weights_;           ///< [operator][input]
  std::vector<Value> repeated_shared_;          ///< [flow]
  std::vector<Value> restored_source_;          ///< [flow]
  std::vector<char> shared_made_;               ///< [flow]: a shared copy was kept or made again in this step
  std::vector<std::vector<char>> was_fetched_;  ///< [operator][input]: in this step
  bool learned_ = false;
  std::size_t tick_ = 0;  ///< computations of backward so far
  std::unordered_map<Value*, std::size_t> last_use_;
  std::unordered_map<Values*, std::size_t> last_use_of_all_;
  std::vector<std::vector<Value*>> free_after_;       ///< [tick]
  std::vector<std::vector<Values*>> free_all_after_;  ///< [tick]
};

}  // namespace turnpoint::step
