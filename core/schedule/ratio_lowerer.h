// SPDX-License-Identifier: Apache-2.0
// How lower_ratio_plan works inside: one object lowers one plan. Forward in ratio_lowering.cpp, backward and parameters
// in ratio_lowering_backward.cpp.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "core/plan/resolved_plan.h"
#include "core/schedule/plan_lowerer.h"
#include "core/schedule/ratio_lowering.h"
#include "core/schedule/ratio_roles.h"

namespace turnpoint {

class RatioLowerer {
 public:
  RatioLowerer(const Scenario& scenario, const RatioCharges& charges, const RatioRoles& roles);
  LoweredPlan run();

 private:
  using Value = PlanValue;
  using Role = std::uint32_t;
  static constexpr std::uint32_t kLanes = LaneItems::kLanesOfRole;

  /// An exchange where it is carried out.
  struct Here {
    std::uint32_t site = 0;
    const RatioExchange* exchange = nullptr;
  };
  /// Where a role's tensors are.
  struct Held {
    std::vector<CostBreakdown> cost;            ///< by operator
    std::vector<std::uint32_t> forward;         ///< items, by operator
    std::vector<std::uint32_t> internal;        ///< buffers, by operator
    std::vector<Value> produced;                ///< by flow
    std::vector<Value> read;                    ///< by access: as its reader reads it
    std::vector<std::uint32_t> began;           ///< by access: the first exchange on its way; kNone
    std::vector<Value> gradient;                ///< by access: of what is read, on its way back
    std::vector<Value> weight, weight_sum;      ///< by operator: gradient of its weights; as far as it is summed
    std::vector<Value> tied;                    ///< by tie: the gradient of another's weight
    std::vector<std::uint32_t> again;           ///< items, by operator: its second run; kNone
    std::vector<std::uint32_t> internal_again;  ///< buffers, by operator, of that run
    std::map<std::uint32_t, Value> made_again;  ///< by buffer of what that run makes once more; not valid before it
    std::map<std::uint32_t, OperatorId> maker;  ///< likewise: by whom
    std::uint32_t gate = kNone;                 ///< the end of the block before
    std::uint32_t backward = kNone;             ///< the last one that was issued
    std::vector<std::uint32_t> computing;       ///< items of this block
  };
  /// Gradients of weights that travel together over a cut, to be whole on both halves or shared out.
  struct Message {
    std::vector<const RatioExchange*> members;
    double bytes = 0;   ///< that the slower half receives
    double filled = 0;  ///< of the gradients
  };
  using Messages = std::array<Message, 2>;  ///< all-reduced; scattered

  const Model& model() const { return facts_.model; }
  const RatioCharges::Lengths& lengths(Role r, OperatorId op) const { return roles_.roles[r].lengths[op.index]; }
  std::uint32_t add(PlanTaskKind kind, Role role, OperatorId op, double seconds);
  std::uint32_t add_exchange(PlanTaskKind kind, const Here& here, double seconds, double bytes);
  void wait(std::uint32_t item);
  void read(std::uint32_t buffer);
  void need(const Value& value);
  std::uint32_t buffer(std::int64_t bytes, BufferKind kind, std::uint32_t item, Role role);
  std::uint32_t last() const { return std::uint32_t(out_.items.size() - 1); }
  void end_block();

  void forward(OperatorId id);
  std::int64_t result_bytes(Role r, OperatorId id) const;
  void bring_weights(OperatorId id, std::uint32_t access);
  void produce(OperatorId id, std::uint32_t flow);
  void bring(std::uint32_t flow);

  void backward(OperatorId id);
  Value sum_of_gradients(Role r, OperatorId id, std::uint32_t flow);
  void backward_on(Role r, OperatorId id);
  bool runs_again(Role r, OperatorId id) const { return charges_.runs_again(id, roles_.roles[r].devices.front()); }
  Value in_backward(Role r, Value value);
  void run_again(Role r, OperatorId id);
  void pass_back(Role r, OperatorId id, std::uint32_t item, const Value& through_view);
  void return_gradients(std::uint32_t flow);
  void return_tied(std::uint32_t tie);

  void synchronise(OperatorId id);
  std::uint32_t around(OperatorId id, std::uint32_t site) const;
  void join(const Here& here);
  void send(std::uint32_t site);
  void send(std::uint32_t site, Message& filled);
  void keep_shard(Role r, OperatorId id, std::uint32_t item);
  bool is_scattered_inside(Role r, OperatorId id, std::uint32_t site) const;
  void update(Role r, OperatorId id);
  void gather(OperatorId id);

  const Scenario& scenario_;
  const RatioCharges& charges_;
  const RatioRoles& roles_;
  const PlanFacts facts_;
  LoweredPlan out_;
  std::vector<Held> held_;                           ///< by role
  std::vector<std::vector<Here>> by_flow_, by_tie_;  ///< outer cuts first
  std::vector<std::vector<Here>> weights_of_;        ///< by operator, likewise
  std::vector<std::vector<Here>> new_weights_of_;    ///< likewise
  std::vector<std::vector<Here>> left_back_;         ///< by flow: gradients that have not travelled
  std::vector<std::vector<char>> done_;              ///< by flow and consumer: its backward has been issued
  std::vector<Messages> messages_;                   ///< by site
  std::vector<OperatorId> updates_;                  ///< in the order of backward
};

}  // namespace turnpoint
