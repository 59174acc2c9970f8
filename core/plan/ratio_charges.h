// SPDX-License-Identifier: Apache-2.0
// What a ratio plan's devices do and what the halves of its cuts exchange, item by item and without when: the evaluator
// adds the items up (ratio_evaluator.h), the schedule lays them on lanes (core/schedule/ratio_lowering.h).
//
// At a cut a tensor is split, whole or a partial sum on either half, as a layout of one axis would have it. A half
// fetches what it lacks of the state that a reader wants: of a split tensor that is to be whole 1 - had, between splits
// of two dimensions wanted * (1 - had), of the same dimension what it has too little; of a partial sum all, or what it
// wants of it (resources/manual/mathematics.md, 4). It receives at the rate of the links of its devices that lead to
// the other half, and both halves wait for the slower one, with one hop's latency, two for a sum that all want. Readers
// that want the same share one exchange; so do gradients that lie alike. Gradients of a cut's weights travel in
// buckets, as in other plans. Where the update of weights is shared out at a cut, either half receives the sum of its
// own share of the gradients, and behind the update the other half's share of the weights. Times are the data sheet's:
// neither measured times nor curves of collectives are of unequal parts (resources/manual/costs.md, 3, third rule).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/breakdown.h"
#include "core/cost/parameters.h"
#include "core/cost/tensor_use.h"
#include "core/hardware/cluster.h"
#include "core/plan/loop_lengths.h"
#include "core/plan/ratio_plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Between the halves of a cut.
struct RatioLink {
  std::array<double, 2> bytes_per_second{};  ///< at which either half receives
  double latency_s = 0;
  bool inside_node = false;
};

/// What both halves of a cut take part in.
struct RatioExchange {
  enum class What : std::uint8_t {
    tensor,           ///< brought into the state that readers want
    gradient,         ///< of such a tensor, brought back
    weight,           ///< another operator's weight, for one that reads it, too
    tied_gradient,    ///< back to the weight's owner
    weight_gradient,  ///< of an operator's own weights, summed
    update_sums,      ///< of norms, rows or columns over the shards of an update, which takes longer for them
    new_weights,      ///< behind their update, where that is shared out
  };
  What what = What::tensor;
  OperatorId op;                    ///< that pays: the (first) reader, or the weights' owner
  std::uint32_t subject = 0;        ///< of tensor and gradient the flow, of weight and tied_gradient the tie
  std::vector<std::uint32_t> uses;  ///< of tensor and gradient: those of the flow's consumers that share it
  NetworkPart part = NetworkPart::all_gather;
  double seconds = 0;  ///< above 0
  double bytes = 0;    ///< that the slower half receives
  double both = 0;     ///< bytes that both halves receive together
};

/// Of an operator's own weights those that both halves of a cut hold.
struct RatioWeights {
  double gradient = 0, weight = 0;  ///< bytes: of gradients that are partial sums, of the weights as they travel
  /// The part of a message's latency that either pays.
  double gradient_hops = 0, weight_hops = 0;
  /// By round what their update sums over shards (core/cost/summed_elements.h), and its part of a latency.
  struct Sum {
    double bytes = 0, hops = 0;
  };
  std::vector<Sum> sums = {};
};

/// What one device updates of a parameter that it holds. Those that are the same in all of this are cut as one run.
struct RatioUpdate {
  double share = 1;
  std::uint64_t partial = 0, whole = 0;  ///< a bit a level: its gradient is a partial sum there; both halves hold it
  friend auto operator<=>(const RatioUpdate&, const RatioUpdate&) = default;
};
using RatioUpdates = std::vector<RatioUpdate>;  ///< by input of an operator; empty: all is updated

class RatioCharges {
 public:
  using Lengths = std::vector<std::int64_t>;  ///< of one operator's loops

  /// Scenario and plan must outlive it.
  RatioCharges(const Scenario& scenario, const RatioPlan& plan);

  /// Errors: a tree that does not hold every device of the cluster once, or cuts that do not go with it, each named;
  /// an update that is shared out between halves that do not hold the weights alike (ratio_places.h); a scenario in 8
  /// bits, whose casts are not priced here.
  Expected<void> check_tree() const;
  /// The cut of this part, which has more than one device; errors: there is none, or it is another part's.
  Expected<const RatioPlan::Cut*> cut_of(std::uint32_t part, std::uint32_t cut) const;
  /// Loops of either half. Errors: a share of a loop that may not be split, or that leaves a half nothing.
  Expected<std::array<LoopLengths, 2>> divide(const RatioPlan::Cut& cut, const LoopLengths& lengths) const;

  /// Devices are places in the plan's order: the halves are [first, second) and [second, end).
  RatioLink link_between(std::uint32_t first, std::uint32_t second, std::uint32_t end) const;
  /// Whether two parts next to each other have the same devices, linked alike, on which the same runs again: then what
  /// holds of one holds of the other.
  bool alike(std::uint32_t first, std::uint32_t second, std::uint32_t end) const;
  /// Whether also what the halves do is the same, so that one tells of both.
  bool one_half_tells(std::uint32_t part, const RatioPlan::Cut& cut, const std::array<LoopLengths, 2>& halves,
                      std::uint32_t first) const;
  /// Of a cut, whose part has these lengths: tensors and their gradients flow by flow, then weights' gradients and new
  /// weights, then ties.
  std::vector<RatioExchange> exchanges(const RatioPlan::Cut& cut, const LoopLengths& lengths,
                                       const RatioLink& link) const;

  /// By operator, whether its update is shared out or not.
  std::vector<RatioWeights> weights_at(const RatioPlan::Cut& cut, const LoopLengths& lengths) const;
  /// What halves exchange of an operator's weights if the first one updates `first` of them; 0: both all of them.
  void exchange_weights(std::vector<RatioExchange>& made, OperatorId op, const RatioWeights& there, double first,
                        const RatioLink& link) const;
  /// How a cut of this level changes what a half updates, which takes `share` of what is shared out; 0: nothing is.
  void share_out(OperatorId op, const RatioPlan::Cut& cut, int level, double share, RatioUpdates& updates) const;
  /// As the dimension of a layout: how a cut leaves the gradient of the weight at this input.
  int cut_of_weight(OperatorId op, std::size_t input, const RatioPlan::Cut& cut) const;

  /// Whether the operator runs once more in backward on this device.
  bool runs_again(OperatorId op, std::uint32_t device) const;
  /// What one device (its number in the cluster) computes of an operator, and what it holds besides tensors that are
  /// read by others.
  CostBreakdown device_cost(OperatorId op, std::uint32_t device, const Lengths& lengths) const;
  /// Elements of its weights that are updated there.
  std::int64_t updated(OperatorId op, const Lengths& lengths, const RatioUpdates& updates) const;
  /// Seconds in which a device updates so many elements of an operator's weights.
  double update_s(std::int64_t elements, std::uint32_t device) const;

  /// By flow and consumer, whether what the consumer reads is there as its producer left it: at no cut so far did it
  /// lie otherwise. Only of such tensors does another run of the producer spare a copy.
  using AsLeft = std::vector<std::vector<char>>;
  AsLeft as_left_by_all() const;
  /// What is left of it behind a cut.
  void cross(const RatioPlan::Cut& cut, const LoopLengths& lengths, AsLeft& as_left) const;
  /// What second runs have to do with a tensor on one device; as it stands: nothing.
  struct FlowAgain {
    bool made = false;                           ///< its producer runs again
    const std::vector<char>* read = nullptr;     ///< by consumer: one that runs again reads it there
    const std::vector<char>* as_left = nullptr;  ///< by consumer; there where `made`
  };
  FlowAgain again(std::uint32_t flow, std::uint32_t device, const AsLeft& as_left) const;
  /// Adds what a device holds of a tensor (TensorUses::flows) for backward to its producer's cost.
  void hold_flow(std::uint32_t flow, const LoopLengths& lengths, const FlowAgain& again, CostBreakdown& producer) const;

  /// A device's part of what is accessed.
  std::vector<std::int64_t> local_shape(const Operator& op, const Access& access, const Lengths& lengths) const;
  double elements(const Operator& op, const Access& access, const Lengths& lengths) const;
  /// In the precision of its kind.
  std::int64_t bytes_of(const Operator& op, const Access& access, const Lengths& lengths) const;
  /// Elements of the weights that the operator owns.
  std::int64_t owned(OperatorId op, const Lengths& lengths) const;
  /// Of a loss in fp32 beside 16-bit logits.
  std::int64_t excess(const Operator& op, const Lengths& lengths) const;

  const TensorUses& uses() const { return uses_; }
  const ParameterBytes& counted() const { return counted_; }  ///< under the scenario's accounting
  const ParameterBytes& real() const { return real_; }

 private:
  struct Held;
  struct Ends;
  /// One of the plan's reruns, for looking up.
  struct RunsAgain {
    std::vector<char> op;                  ///< by operator
    std::vector<std::vector<char>> reads;  ///< by flow and consumer: it, or what views it, is read by one of those
  };
  RunsAgain looked_up(const RatioPlan::Rerun& rerun) const;
  static constexpr std::uint32_t kNoRerun = 0xffffffff;
  const RunsAgain* again_on(std::uint32_t device) const;
  Expected<void> check_reruns() const;
  Expected<void> check_updates() const;
  RatioUpdates updates_on(OperatorId op, std::uint32_t device) const;

  Error bad(const std::string& what) const;
  Held held(OperatorId id, const Access& access, bool is_output, bool gradient, const Ends& at) const;
  void add(std::vector<RatioExchange>& made, RatioExchange exchange, const Held& from, const Held& to, double bytes,
           const RatioLink& link, double hops = 1) const;
  void exchange_flow(std::vector<RatioExchange>& made, std::uint32_t flow, const Ends& at) const;
  void exchange_tie(std::vector<RatioExchange>& made, std::uint32_t tie, const Ends& at) const;
  double phase_seconds(const Operator& op, const Lengths& lengths, const DeviceType& type, bool backward) const;
  void hold_parameters(OperatorId id, const Lengths& lengths, std::uint32_t device, CostBreakdown& cost) const;

  const Scenario& scenario_;
  const RatioPlan& plan_;
  const Model& model_;
  const Cluster& cluster_;
  const Settings& settings_;
  const TensorUses uses_;
  const ParameterBytes counted_, real_;
  const std::vector<RealNode> nodes_;
  std::vector<const RealNode*> node_of_;  // by device
  std::vector<RunsAgain> again_;          // by the plan's reruns
  std::vector<std::uint32_t> again_of_;   // by device: index into again_, or kNoRerun
  std::vector<std::uint32_t> place_of_;   // by device, in the plan's order; empty: no update is shared out
  std::vector<char> shared_out_;          // by operator: its update, at any cut; empty likewise
};

}  // namespace turnpoint
