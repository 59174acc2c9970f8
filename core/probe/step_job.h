// SPDX-License-Identifier: Apache-2.0
// turnpoint/step-job@1: "run this plan's training step", what turnpoint-probe is asked for, and what it answers. The
// job carries the whole model and plan, so that the probe needs no file of ours beside it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/probe_job.h"
#include "core/model/task_graph.h"
#include "core/model/task_role.h"
#include "core/plan/plan.h"

namespace turnpoint {

enum class StepMode : std::uint8_t {
  ranks,  ///< one rank a device of the plan's mesh, with all exchanges
  slice,  ///< the part of one device alone, its operators one after the other; exchanges are not made
};
const char* to_string(StepMode mode);

/// A placement of the model's training graph, whole operators or their time steps (core/schedule/unrolling.h), each
/// task on one device.
struct StepPlacement {
  struct Task {
    OperatorId op;
    TaskRole role = TaskRole::forward;
    std::uint32_t device = 0;
    std::int64_t step = -1;       ///< position in the sequence; -1: the operator as a whole
    std::uint32_t direction = 0;  ///< of a time step: 1 where the sequence is walked backwards
  };
  /// What a task makes, sent once to another device whose tasks read of it; bytes as the simulator counts them.
  struct Transfer {
    TaskIndex task = 0;
    std::uint32_t to = 0;
    std::int64_t bytes = 0;
  };
  std::uint32_t devices = 1;
  std::vector<Task> tasks;
  std::vector<std::vector<TaskIndex>> order;  ///< each device's tasks as they run there
  std::vector<Transfer> transfers;            ///< by (task, device)
};

/// A ratio plan (core/plan/ratio_plan.h) without its costs: ranks hold unequal parts. Devices are ranks.
struct StepRatio {
  struct Part {
    std::uint32_t devices = 1;
    std::array<std::uint32_t, 2> halves{};  ///< indices of parts before it; meaningless for one device
  };
  struct Share {
    std::int8_t loop = -1;   ///< of the operator, that is cut; -1: both halves do all of it
    std::int64_t first = 0;  ///< of the loop's length in this part, what the first half has
  };
  struct Cut {
    std::uint32_t part = 0;
    std::vector<Share> share;             ///< by operator
    std::array<std::uint32_t, 2> next{};  ///< the halves' own cuts; kNoCut where a half is a device
    /// By operator: of the weights that both halves hold alike, the share that the first one updates; 0: both update
    /// all that they hold. Empty: 0 for all.
    std::vector<double> updates = {};
  };
  static constexpr std::uint32_t kNoCut = 0xffffffff;

  std::vector<std::uint32_t> order;  ///< ranks as the parts list them, each once, the first half's first
  std::vector<Part> parts;           ///< the last one is the whole
  std::vector<Cut> cuts;             ///< the first one is the whole's
  /// By rank, rising: what runs forward once more in backward there. Ranks that are missing: nothing.
  std::vector<std::vector<OperatorId>> again;
};

inline constexpr double kMostSlowness = 1000;  ///< that a rank can be made slower by

struct StepJob {
  ModelPtr model;
  Plan plan;              ///< a sharding plan without pipeline; of a placement or a ratio plan unsplit_plan()
  int micro_batches = 1;  ///< that a step goes through before its update; model and plan are those of one
  std::optional<StepPlacement> placement;
  std::optional<StepRatio> ratio;  ///< not beside a placement
  ProbeBackend backend = ProbeBackend::automatic;
  int device = 0;  ///< CUDA: which GPU
  CpuKernels cpu_kernels = CpuKernels::automatic;
  StepMode mode = StepMode::ranks;
  int slice_device = 0;  ///< slice: whose part
  ProbePrecision precision = ProbePrecision::fp32;
  /// Bytes per element as the plan's scenario counts them (ParameterBytes).
  int floating_bytes = 4, weight_bytes = 4, gradient_bytes = 4, optimizer_bytes = 8;
  std::string optimizer = "adam";
  bool prove = true;  ///< compare the partitioned step with the unpartitioned one first (mode ranks)
  int warm_up = 2, steps = 10;
  /// By rank, how many times as long as it takes it is to compute in the timed steps, 1 or more; the others as fast as
  /// they are. Empty: all are.
  std::vector<double> slow;
  double budget_s = 60;  ///< the timed steps end early then, with at least three
  std::uint64_t seed = 1;

  int devices() const {
    return placement ? static_cast<int>(placement->devices)
           : ratio   ? static_cast<int>(ratio->order.size())
                     : plan.mesh.devices();
  }
};
/// The plan of one device that splits nothing and keeps everything.
Plan unsplit_plan(const Model& model);
Expected<StepJob> parse_step_job(std::string_view text, const std::string& where);
std::string write_step_job(const StepJob& job);
/// Sixteen hexadecimal digits that tell what is run: FNV-1a (64 bits) of the job's document without what only says
/// where and how long (paths, predicted times and costs, device, kernels, numbers of steps, budget, proof, seed). The
/// same job on another machine or priced on other hardware has the same.
std::string fingerprint(const StepJob& job);

/// What the proof takes: the step carried out twice in double, by all ranks and whole, everything recorded.
struct ProofNeeds {
  double seconds = 0, bytes = 0;
  /// Within the budget and half the memory that can be had (0: not known); else the probe leaves the proof out.
  bool affordable(double budget_s, std::int64_t available_bytes) const;
};
/// What the machine has to prove with.
struct ProofMachine {
  int cores = 1;
  bool library = false;  ///< products by a library (gpu_probe/cpu/double_products.h)
};
/// Of a placement unsplit_plan(). Model and plan of one micro-batch of so many.
ProofNeeds proof_needs(const Model& model, const Plan& plan, const ProofMachine& machine = {}, int micro_batches = 1);
inline ProofNeeds proof_needs(const StepJob& job, const ProofMachine& machine = {}) {
  return proof_needs(*job.model, job.plan, machine, job.micro_batches);
}

/// Seconds over the timed steps.
struct Spread {
  double min_s = 0, q1_s = 0, median_s = 0, q3_s = 0;
  int samples = 0;
};

enum class StepPhase : std::uint8_t { forward, backward, recompute, update };
const char* to_string(StepPhase phase);

/// One operator's computing in one phase of a step, without exchanges: of the rank that took longest, step by step.
struct MeasuredPhase {
  OperatorId op;
  StepPhase phase = StepPhase::forward;
  Spread time;
};

/// One collective of the plan. Its time is that of the rank that waited least for the others, step by step.
struct MeasuredExchange {
  std::int32_t reshard = -1;  ///< index into Plan::reshards; -1: of `op`'s parameters (all_steps())
  OperatorId op;              ///< reshard: its producer
  bool backward = false;
  std::int32_t step = 0;  ///< index into the steps of that direction
  ReshardMove move = ReshardMove::all_gather;
  double planned_bytes = 0, received_bytes = 0;  ///< on one device, the mean over the ranks
  std::optional<Spread> time;                    ///< nothing where it was not made (slice)
};

/// One task of a placement, without what it waits for.
struct MeasuredTask {
  TaskIndex task = 0;
  Spread time;
};

/// One transfer of a placement; its time is that of handing over and of taking it in, without waiting.
struct MeasuredTransfer {
  std::int32_t transfer = 0;  ///< index into StepPlacement::transfers
  double planned_bytes = 0, received_bytes = 0;
  Spread time;
};

/// One device of a placement or a ratio plan.
struct MeasuredDevice {
  std::int64_t persistent = 0;  ///< parameters and optimizer state, bytes
  std::int64_t peak = 0;        ///< of everything, as its allocator counted
  Spread busy;                  ///< its computing together
  double received_bytes = 0;    ///< ratio plan: in a step
};

/// One tensor's way between the ranks of a ratio plan, all cuts together.
struct MeasuredMove {
  enum class Kind : std::uint8_t {
    activation,   ///< from its producer to readers that want it alike
    gradient,     ///< of an activation, from readers that leave it alike to its producer
    weight_sum,   ///< of a parameter's gradient, over the ranks that share the parameter
    new_weight,   ///< of a parameter whose update is shared out, to the ranks that share it
    tied_weight,  ///< a parameter from the operator that stores it to one that uses it too
    tied_sum,     ///< of its gradient there, back to the operator that stores it
  };
  Kind kind = Kind::activation;
  TensorId tensor;
  OperatorId op;  ///< producer, owner, or user of a tied parameter
  /// Over all cuts and halves, what a half receives, where an element counts once, however many of its ranks get it:
  /// what plans price (ratio_evaluator.h).
  double once_bytes = 0;
  double received_bytes = 0;  ///< over all ranks, as it arrived
  Spread time;
};
const char* to_string(MeasuredMove::Kind kind);

/// Bytes, of each kind on the device that held most of it, as its allocator counted them.
struct MeasuredMemory {
  std::int64_t parameters = 0, gradients = 0, optimizer = 0, kept = 0;  ///< the most of each at any time
  std::int64_t peak = 0;          ///< of everything together, momentary tensors and buffers included
  std::int64_t counted_peak = 0;  ///< the most of the four kinds above together
};

/// A step in the plan's own precision where the proof is in a finer one: what rounding makes of it, against the same
/// unpartitioned step.
struct StepRounding {
  std::string precision;                      ///< "bf16"
  double loss_error = 0, gradient_error = 0;  ///< relative; of gradients by root mean squares of tensors
  double loss_tolerance = 0, gradient_tolerance = 0;
  std::string where;  ///< of the largest error of a tensor
  bool holds() const { return loss_error <= loss_tolerance && gradient_error <= gradient_tolerance; }
};

struct StepNumerics {
  double loss_error = 0, activation_error = 0, gradient_error = 0, update_error = 0;  ///< relative
  double tolerance = 0;
  std::string precision;  ///< in which the proof was computed: "fp64", "fp32"
  std::string where;      ///< of the largest error
  std::optional<StepRounding> rounding = std::nullopt;
};

struct StepMeasurement {
  std::string backend;  ///< "cpu", "cuda"
  StepMode mode = StepMode::ranks;
  int ranks = 1, cores = 0;  ///< fewer cores than ranks: times are not those of separate devices
  Spread step;               ///< one whole step; slice: without exchanges
  std::vector<MeasuredPhase> phases;
  std::vector<MeasuredExchange> exchanges;
  std::vector<MeasuredTask> tasks;          ///< of a placement; `phases` has their sums by operator
  std::vector<MeasuredTransfer> transfers;  ///< likewise, instead of exchanges
  std::vector<MeasuredDevice> devices;      ///< of a placement or a ratio plan, by device
  std::vector<MeasuredMove> moves;          ///< of a ratio plan, instead of exchanges
  MeasuredMemory memory;
  std::optional<StepNumerics> numerics;
  /// Of all exchanges of a step on one device; of a placement, of all transfers between all devices; of a ratio plan,
  /// of all moves: what the job's shares demand and what arrived, by MeasuredMove::once_bytes.
  double planned_bytes = 0, received_bytes = 0;
  std::vector<std::string> notes;  ///< what could not be measured, and why; what the plan does not list
};

}  // namespace turnpoint
