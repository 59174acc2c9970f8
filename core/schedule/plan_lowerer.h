// SPDX-License-Identifier: Apache-2.0
// How PlanLowering works inside: one object lowers one plan. Forward in plan_lowering.cpp, backward and parameters in
// plan_lowering_backward.cpp, stages and micro-batches in plan_lowering_pipeline.cpp.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/plan/resolved_plan.h"
#include "core/schedule/plan_lowering.h"

namespace turnpoint {

/// A tensor as somebody may read it: there once `item` has ended.
struct PlanValue {
  std::uint32_t item = kNone, buffer = kNone;
  bool valid() const { return item != kNone; }
};

class PlanLowerer {
 public:
  PlanLowerer(const Scenario& scenario, const PlanFacts& facts, const Plan& plan, UnreadCopies unread);
  Expected<LoweredPlan> run();

 private:
  using Value = PlanValue;
  /// Of a role, in this order; collectives and sends are on the lane of the links that they need.
  enum class Lane { compute, inside, between, none };
  static constexpr std::uint32_t kLanes = LaneItems::kLanesOfRole;

  /// The gradient that another operator's use of a weight gave back; without a buffer once it is added to the first.
  struct TiedGradient {
    std::uint32_t owner_input = 0;
    Value value;
  };

  /// Where the tensors of one micro-batch are.
  struct Pass {
    Pass(const PlanFacts& facts, const ResolvedPlan& measure);
    std::vector<Value> produced, shared;              // by flow: in the producer's layout, in the shared one
    std::vector<Value> produced_again, shared_again;  // made in backward
    std::vector<Value> received;                      // by flow: on the stage that runs now
    std::vector<std::uint32_t> gradient;              // by flow: the last of a chain of contributions
    std::vector<Value> read, base, read_again;        // by access: as read, and what that was made of
    std::vector<std::uint32_t> forward, again, internal, internal_again;  // by operator: items, buffers
    std::vector<std::uint32_t> next_gather;                               // by group of parameters
    std::vector<std::uint32_t> next_copy_gather;                          // by copy of a weight of another stage
    std::vector<char> gathered;                                           // by operator: for backward
    std::vector<std::vector<Value>> weights;                              // by operator: gathered for backward
    std::vector<std::vector<Value>> tied;                                 // by access: of another's weight, likewise
    std::vector<std::vector<TiedGradient>> tied_gradients;  // by operator: of weights that others use, too
    std::uint32_t gradients_here = kNone;  // the send that brought gradients to the stage that runs now
  };
  /// A gradient that waits for the others of its message.
  struct Waiting {
    OperatorId op;
    std::uint32_t group = 0;
    Value gradient;
    bool scattered = false;
  };
  /// Gradients that travel together, over the same axes by the same collective, are exchanged once the last is there.
  struct Message {
    ReshardMove move = ReshardMove::slice;
    std::uint32_t axes = 0;
    double bytes = 0;
    std::vector<Waiting> members;
  };
  struct Contribution {
    Value value;
    std::uint32_t before = kNone;
  };

  // Items.
  std::uint32_t lane_of(std::uint32_t role, Lane lane) const { return kLanes * role + std::uint32_t(lane); }
  bool computes(std::uint32_t item) const { return out_.items.lane[item] == lane_of(role_, Lane::compute); }
  Lane links_of(std::uint32_t axes) const { return (axes & between_nodes_) != 0 ? Lane::between : Lane::inside; }
  Lane links_between(std::uint32_t stage, std::uint32_t other) const;
  std::uint32_t add(PlanTaskKind kind, Lane lane, OperatorId op, double seconds);
  std::uint32_t add_step(PlanTaskKind kind, OperatorId op, const ReshardStep& step);
  void wait(std::uint32_t item) {
    if (item != kNone) out_.items.wait_for.push_back(item);
  }
  std::uint32_t last() const { return std::uint32_t(out_.items.size() - 1); }
  std::uint32_t buffer(std::int64_t bytes, BufferKind kind, std::uint32_t item);
  void read(std::uint32_t buffer, std::uint32_t item) {
    if (buffer != kNone) out_.buffers.read(buffer, item);
  }
  /// The item added last needs the value.
  void need(const Value& value) {
    wait(value.item);
    read(value.buffer, last());
  }
  Value follow(PlanTaskKind kind, OperatorId op, TensorId tensor, const std::vector<ReshardStep>& steps, Value value,
               std::uint32_t gate);

  // Blocks: all forward, all backward, or one of either of a micro-batch on a stage.
  void open_block(std::uint32_t role, std::uint32_t gate);
  std::uint32_t close_block();
  std::uint32_t fetch_gate() const { return before_last_fetcher_ != kNone ? before_last_fetcher_ : block_gate_; }
  void fetched_for(std::uint32_t item);
  void gather(OperatorId owner, std::uint32_t only, std::vector<Value>& values);
  void gather_first(OperatorId id, std::vector<Value>& needed);

  // Forward.
  void forward(OperatorId id, bool rerun = false);
  void produce(OperatorId id, std::uint32_t flow, std::uint32_t item, bool rerun);
  void read_input(OperatorId id, std::uint32_t access, PlanTaskKind kind);
  void read_tied(OperatorId id, std::uint32_t access, std::uint32_t tie);

  // Backward.
  void backward(OperatorId id);
  Value gradient_of_output(OperatorId id, std::uint32_t flow);
  void collect_saved(OperatorId id, std::vector<Value>& needed);
  void tied_in_backward(OperatorId id, std::uint32_t access, std::uint32_t tie, std::vector<Value>& needed);
  void pass_gradients_on(OperatorId id, std::uint32_t item, const Value& through_view);
  void hold_unread(OperatorId id);
  void contribute(std::uint32_t flow, const Value& value);
  void contribute_tied(const ParameterTie& tie, Value gradient);
  Value repeat(std::uint32_t reshard, OperatorId op, const Value& from);
  Value produced_in_backward(std::uint32_t flow);
  Value shared_in_backward(std::uint32_t flow);
  Value input_in_backward(OperatorId id, std::uint32_t access);
  void run_again(OperatorId id);
  void backward_weights(OperatorId id, std::vector<Value>& needed);

  // Parameters.
  void synchronise(OperatorId id, std::uint32_t backward);
  void exchange(const Waiting& gradient);
  void exchange_now(const Waiting& gradient);
  void send(Message& message);
  void send_messages();
  Value reduce(const Waiting& waiting, std::uint32_t gate);
  void update_block(std::uint32_t role, std::uint32_t gate);
  void update(OperatorId id);

  // Pipelines.
  void run_pipeline();
  std::uint32_t stage_of(std::uint32_t run) const { return run % resolved_.stages(); }
  void forward_block(std::uint32_t run, std::int32_t batch);
  void backward_block(std::uint32_t run, std::int32_t batch);
  void begin_block(std::uint32_t run, std::int32_t batch);
  void send_on(std::uint32_t run);
  void send_back(std::uint32_t run);
  void run_layer_again(int layer);
  void gather_copy(OperatorId id, std::uint32_t access, std::vector<Value>& values);
  void tied_user(OperatorId id, std::uint32_t access, std::uint32_t item);
  void update_copy(const PlanPipeline::TiedSum& sum, const Value& gradient);
  void sum_between_stages(OperatorId id, std::vector<Value>& needed);
  void sum_copy(std::size_t tied, std::uint32_t gate);
  void sum_behind(std::uint32_t stage);
  bool crosses(std::uint32_t flow, std::uint32_t run) const;
  std::int64_t bytes_beyond(std::uint32_t flow, std::uint32_t run) const;

  void mark_counted();

  const PlanFacts& facts_;
  const Scenario& scenario_;
  const Model& model_;
  const Plan& plan_;
  ResolvedPlan resolved_;
  const UnreadCopies unread_;
  LoweredPlan out_;

  Pass* pass_ = nullptr;
  std::uint32_t between_nodes_ = 0;  ///< axes
  std::uint32_t role_ = 0;
  std::int32_t batch_ = 0;
  std::uint32_t block_gate_ = kNone;  ///< nothing of the block begins before it has ended
  std::uint32_t block_begin_ = 0;     ///< first item of the block
  std::uint32_t last_fetcher_ = kNone, before_last_fetcher_ = kNone;
  bool fetched_ = false;  ///< for the operator being lowered
  std::vector<Contribution> contributions_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> unread_until_;  ///< shared copies, and their producers' backward
  std::vector<PlanValue> held_gradient_;                               ///< by group of parameters
  std::vector<Message> messages_;                                      ///< of the backward that is being lowered
  std::vector<std::vector<Waiting>> summed_behind_;                    ///< by role: PlanPipeline::sums_behind
  std::uint32_t sums_gate_ = kNone;                                    ///< what these wait for
  std::vector<std::vector<OperatorId>> updates_;  ///< by role: whose last backward has been lowered

  // Pipelines.
  std::vector<Pass> passes_;
  std::uint32_t run_ = 0;                              ///< of layers, that is being lowered
  std::vector<std::vector<OperatorId>> operators_of_;  ///< by run
  std::vector<std::uint32_t> stage_gate_;              ///< the end of each stage's last block
  std::vector<Value> tied_user_gradient_;              ///< by tied sum
  std::uint32_t rerun_gate_ = kNone;
  std::set<int> rerun_layers_;  ///< of the block
};

}  // namespace turnpoint
