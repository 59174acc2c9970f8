// SPDX-License-Identifier: Apache-2.0
// Time and memory of one operator under one configuration (resources/manual/costs.md, 3 to 5). Reshardings and kept
// activations are not in here: they belong to tensors (core/cost/tensor_use.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cost/breakdown.h"
#include "core/cost/device_times.h"
#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"
#include "core/cost/parameters.h"
#include "core/cost/phase_work.h"
#include "core/cost/resharding.h"
#include "core/cost/tensor_use.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Bytes of one element during training: floating-point tensors in the scenario's precision (fp32 4, bf16 2), integers
/// and booleans in their own size.
int element_bytes(const Tensor& tensor, Precision precision);

/// Whether it multiplies 8-bit numbers where the scenario's precision is fp8: a matrix product with a weight, but for
/// the one over a vocabulary, which engines leave in 16 bits.
bool multiplies_eight_bits(const Model& model, const Operator& op);

/// Bytes on one device that a loss over classes keeps beside logits of 16 bits, since its probabilities are in fp32; 0
/// for all else.
std::int64_t loss_excess_bytes(const Settings& settings, const Model& model, const Operator& op,
                               const Configuration& split, const Mesh& mesh);

/// Bytes on one device that an operator keeps from forward to backward beside its tensors: of a loss the above, of
/// kernels that are not fused what stands between them (core/cost/eager_kernels.h).
std::int64_t held_inside_bytes(const Settings& settings, const Model& model, const Operator& op,
                               const Configuration& split, const Mesh& mesh);

/// The name under which an operator's measured times are fitted: its kind, with kernel and stride for convolutions
/// ("convolution 3x3 stride 2"), and "matmul of activations" for products without a weight.
/// Where a profile has no fit of a kernel and stride, that of all convolutions ("convolution") counts.
std::string fitted_kind(const Model& model, const Operator& op);

/// Costs of one scenario's operators. Thread-safe for concurrent use once built.
class OperatorCostModel {
 public:
  /// All must outlive the model. With micro-batches the scenario is that of one of them.
  OperatorCostModel(const Scenario& scenario, const TensorUses& uses, const ReshardingModel& resharding,
                    int micro_batches = 1);

  struct Cost {
    CostBreakdown breakdown;  ///< parameters, gradients, optimizer, internal saved tensors, compute, sync
    CostBreakdown once;       ///< of its times, those that an iteration has once (once_an_iteration())
    std::vector<ParameterSteps> parameters;  ///< collectives over its parameters
  };
  /// Memory of the parameters it owns, of tensors saved inside the operator and of outputs without reader that its own
  /// backward reads;
  /// forward and backward = max(FLOP / (peak e_f), bytes / (bandwidth e_m)) + launch, or what was fitted to
  /// measurements of its kind, or the measured time of the same local signature; the update reads gradient, weight and
  /// state and writes the latter two (resources/manual/mathematics.md, 5.3); gradient synchronisation over the axes
  /// that split a loop dimension a parameter does not walk. A sharded update divides gradients, optimizer state and
  /// update (and, with sharded weights, the weights) by the shards; what is gathered for a moment is not counted. An
  /// update that sums norms, rows or columns over its shards takes as long as that longer, all weights' sums of a round
  /// being one message of which each operator pays its part. Offloaded state crosses the host link twice an
  /// iteration. With micro-batches backward includes accumulation_s().
  Cost cost(OperatorId id, const Configuration& configuration, const MemoryChoice& choice = {},
            bool with_steps = false) const;

  /// The cost of an iteration, through all micro-batches.
  CostBreakdown iteration(const Cost& cost) const { return of_iteration(cost.breakdown, cost.once, micro_batches_); }

  /// An alternative of an operator's own frontier.
  struct Alternative {
    MemoryChoice choice;
    CostBreakdown breakdown;  ///< of an iteration
  };
  /// The Pareto-optimal choices under this configuration that the scenario's switches allow, by rising memory. Of equal
  /// ones the plainest. For an operator that carries the choice of running again (RunAgain::carried), `again` is it.
  std::vector<Alternative> alternatives(OperatorId id, const Configuration& configuration, bool again = false) const;
  /// The same among those that `accepts` says, ZeRO's first stage among them even where gradients are summed once.
  std::vector<Alternative> alternatives(OperatorId id, const Configuration& configuration, bool again,
                                        const std::function<bool(const MemoryChoice&)>& accepts) const;

  /// Seconds of one forward run: what computing an output again costs.
  double forward_s(OperatorId id, const Configuration& configuration) const {
    return phase_seconds(scenario_.model->operators[id], configuration, false);
  }
  /// Of one forward and one backward run: an operator computes no less, whatever it chooses.
  double passes_s(OperatorId id, const Configuration& configuration) const {
    return plain_passes(id, configuration).compute_s();
  }
  /// On each device; what the times above are made of.
  PhaseWork work(const Operator& op, const Configuration& configuration, bool backward) const;
  /// Of the kernels beside the operator's own, which measured times and fits know nothing of.
  double beside_s(const PhaseWork& work) const;
  /// Seconds in which a micro-batch's backward adds the gradients of its parameters to the sums of the earlier ones:
  /// the first adds nothing, so that this is an average over all of them. 0 with one micro-batch, and as papers
  /// account.
  double accumulation_s(OperatorId id, const Configuration& configuration, const MemoryChoice& choice) const;
  /// Whether additions are priced by measured updates, for lack of measured additions.
  bool adds_as_updates() const { return times_.adds_as_updates; }
  /// Bytes that the update of its parameters reads and writes; 0 without parameters of its own.
  double update_bytes(OperatorId id, const Configuration& configuration, const MemoryChoice& choice) const;
  /// Seconds in which a device updates so many elements of one parameter by itself: its shard over the axes `shards` of
  /// what is `local` on the device, with the sums over shards that the optimizer needs.
  double update_s(std::int64_t elements, std::uint32_t shards, const std::vector<std::int64_t>& local) const;

 private:
  struct Base;
  Base base(OperatorId id, const Configuration& configuration) const;
  CostBreakdown plain_passes(OperatorId id, const Configuration& configuration) const;
  struct Pricing;
  Cost apply(const Base& base, const MemoryChoice& choice, bool with_steps, Pricing& pricing) const;
  double accumulation_s(const Base& base, const MemoryChoice& choice) const;
  double addition_s(const Operator& op, double elements, std::size_t parameters, bool scattered) const;
  int additions() const;  ///< an iteration has of every gradient
  double update_bytes(const Base& base, const MemoryChoice& choice) const;
  double sums_s(const Base& base, const MemoryChoice& choice) const;
  double sums_s(const std::vector<double>& sums, std::uint32_t shards) const;
  double update_seconds(double bytes) const;
  double phase_seconds(const Operator& op, const Configuration& configuration, bool backward) const;
  double cast_seconds(const Operator& op, const Configuration& configuration, bool backward) const;

  const Scenario& scenario_;
  const TensorUses& uses_;
  const ReshardingModel& resharding_;
  int micro_batches_;
  Messages messages_;
  std::vector<double> all_sums_;  ///< by round: elements that all updates together sum over shards
  ParameterBytes bytes_;
  DeviceTimes times_;
};

/// Of an operator's times, those that an iteration has once, through however many micro-batches it goes: its update,
/// the way of its optimizer state from the host and back, the sum of its gradients where every device keeps them whole,
/// the spreading of its new weights.
CostBreakdown once_an_iteration(const CostBreakdown& cost, const std::vector<ParameterSteps>& parameters,
                                Update update);

/// Local bytes of a tensor in a layout.
std::int64_t local_bytes(const Mesh& mesh, const Layout& layout, const Tensor& tensor, Precision precision);

/// Adds the steps' times to the network parts of their collectives.
void add_network(CostBreakdown& cost, const std::vector<ReshardStep>& steps);

}  // namespace turnpoint
