// SPDX-License-Identifier: Apache-2.0
// A model and a plan made ready for execution: which way every tensor takes from its producer to each reader and its
// gradient back, which copies backward finds, which parameters travel together. The same on all ranks.
//
// What is kept follows from the plan and from the model's own marks (Access::saved) alone, worked out here a second
// time: a plan that forgets a copy, a sum or a step is refused, or fails when it is executed, never helped out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "gpu_probe/step/kernels/kernels.h"
#include "gpu_probe/step/values/options.h"

namespace turnpoint::step {

/// One tensor's way from a source to a reader.
struct Way {
  Layout from;         ///< where it lies; partial axes of a shared copy or a parameter speak of its gradient
  Layout start, goal;  ///< of the data; `start` is partial where a producer's sum is still to be made
  Layout read;         ///< `goal` with the axes on which the reader's gradient is partial
  const PlanReshard* reshard = nullptr;  ///< null: the reader takes it as it lies
  bool restores = false;                 ///< the copy that is kept is brought back to `start`, for the producer
  bool saved = false;                    ///< backward reads the tensor through this way
  bool gradient = false;                 ///< the gradient travels back
  bool meets = false;                    ///< it stays partial, to be summed with others at the source
  bool moves() const { return start != goal; }
  bool repeats() const { return reshard && !reshard->repeated.empty(); }
  bool keeps_copy() const { return reshard && (reshard->keep == Keep::after || reshard->keep == Keep::both); }
};

/// A tensor that an operator produces.
struct Flow {
  TensorId tensor;
  OperatorId producer;
  std::uint32_t output = 0;
  bool producer_saves = false, of_view = false;
  Layout produced;
  std::optional<Way> shared;  ///< to a copy that all readers take it from
  std::vector<Model::Use> consumers;
  std::vector<Way> ways;  ///< parallel to consumers
  /// The producer's copy, which its backward reads, is not kept but made again from the one at the end of this way.
  const Way* restoring() const {
    const Way* way = shared ? &*shared : ways.size() == 1 ? &ways.front() : nullptr;
    return way && way->restores ? way : nullptr;
  }
  /// A tensor of one reader is brought into its shape when it is there, not when it is read.
  bool goes_on_at_once() const { return !shared && consumers.size() == 1; }
  /// Where readers take it from and gradients are summed.
  Layout meeting() const { return shared ? shared->read : produced.without_partial(); }
};

/// A later use of a parameter that another operator stores.
struct Tie {
  OperatorId owner, user;
  std::uint32_t owner_input = 0, user_input = 0;
  bool turned = false;  ///< used as the transpose of what is stored
  Way way;
};

/// Parameters of one operator that lie alike on the mesh: synchronised and updated as one.
struct ParameterSet {
  std::vector<std::uint32_t> inputs;
  std::uint32_t partial = 0, whole = 0;  ///< axes on which their gradient is a sum to be made; on which they lie whole
  std::uint32_t shards = 0;              ///< axes among which the update is sharded
  std::vector<ReshardStep> gathers;      ///< of sharded weights, for whoever reads them
  std::vector<ReshardStep> sync;         ///< of the gradient
  std::optional<ReshardStep> spread;     ///< of the new weights after a sharded update
  std::int32_t first_step = 0;           ///< where these three begin in all_steps()
};

struct OperatorProgram {
  Kernel kernel{};
  Configuration split;
  MemoryChoice choice;
  std::vector<Layout> inputs, outputs;  ///< gradient layout of each input, forward layout of each output
  std::vector<std::int32_t> input_flow, input_way, input_tie;  ///< index, or -1
  std::vector<bool> owned;
  std::vector<bool> along;          ///< backward does not read this parameter, but fetches it with those it reads
  std::vector<std::int32_t> output_flow;
  std::vector<ParameterSet> parameters;
  std::uint32_t sum_axes = 0;      ///< axes that split a reduced loop: the output is partial there
  bool runs_again = false;         ///< its output is computed again in backward
  bool recalls_internals = false;  ///< what it keeps inside is computed again in backward
};

/// Immutable; shared by the threads of all ranks. Model and plan must outlive it.
struct Program {
  const Model* model = nullptr;
  const Plan* plan = nullptr;
  StepOptions options;
  std::vector<OperatorProgram> operators;
  std::vector<Flow> flows;
  std::vector<Tie> ties;
  /// Error: a pipeline, an operator without arithmetic, or a plan whose pieces do not fit together.
  static Expected<std::shared_ptr<const Program>> make(const Model& model, const Plan& plan, StepOptions options);
};

}  // namespace turnpoint::step
