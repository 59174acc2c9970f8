// SPDX-License-Identifier: Apache-2.0
// The exact discrete-event simulator of a placed task graph (the rules are resources/manual/simulator.md, and docs of
// the fields below repeat what matters). Deterministic; no tolerance anywhere: two instants are equal if the doubles
// are.
//
// In short: a device runs its tasks one at a time in the order in which they became runnable (or in the order given),
// sends one tensor at a time, once to each other device that wants it, while it computes; receiving is free.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/model/placement.h"
#include "core/model/task_graph.h"

namespace turnpoint {

/// What one device holds from `time_s` until its next sample; the persistent part is constant and kept apart.
struct MemorySample {
  double time_s = 0;
  std::int64_t activation_bytes = 0;  ///< tensors made here
  std::int64_t copy_bytes = 0;        ///< tensors received
  std::int64_t workspace_bytes = 0;
};

/// One sending of a tensor to one other device.
struct SimulatedTransfer {
  TaskIndex source = 0;  ///< the task that made the tensor
  std::uint32_t from = 0, to = 0;
  std::int64_t bytes = 0;
  double start_s = 0, end_s = 0;
};

struct SimulatedDevice {
  double busy_s = 0;                  ///< computing
  double send_s = 0;                  ///< sum of its transfers' durations
  std::int64_t sent_bytes = 0;        ///< sum over its transfers
  std::int64_t persistent_bytes = 0;  ///< from 0 to the end
  std::int64_t peak_bytes = 0;        ///< largest sum of everything that is there at one instant
  double peak_at_s = 0;               ///< the first instant of the peak
};

/// Result of one simulation.
struct Simulation {
  double makespan_s = 0;  ///< the last completion, of a task or a transfer
  std::vector<SimulatedDevice> devices;
  std::vector<double> start_s, end_s;        ///< by task
  std::vector<SimulatedTransfer> transfers;  ///< by (source, destination device)
  // What each device ran and sent, in that order: device d's tasks are run[run_begin[d]] ... run[run_begin[d + 1] - 1].
  std::vector<std::uint32_t> run_begin, send_begin;
  std::vector<TaskIndex> run;
  std::vector<std::uint32_t> sent;                ///< indices into transfers; by start where nothing contends
  std::vector<std::vector<MemorySample>> memory;  ///< per device, if asked for

  std::span<const TaskIndex> run_on(std::uint32_t device) const {
    return {run.data() + run_begin[device], run.data() + run_begin[device + 1]};
  }
  std::span<const std::uint32_t> sent_by(std::uint32_t device) const {
    return {sent.data() + send_begin[device], sent.data() + send_begin[device + 1]};
  }
};

/// Runs simulations; keeps its working memory between them, so that a search that simulates often allocates once.
class Simulator {
 public:
  Simulator();
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// Fills `result`, whose memory is reused too. Errors: a placement that is not the graph's (check_placement), an
  /// order that can never finish (the message names the tasks waiting for each other).
  Expected<void> run(const TaskGraph& graph, const Placement& placement, Simulation& result,
                     bool memory_over_time = false, const std::string& where = "placement");

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Most bytes that one device sends to one other; 0 where nothing is sent.
std::int64_t peak_communication(const Simulation& simulation);

Expected<Simulation> simulate(const TaskGraph& graph, const Placement& placement, bool memory_over_time = false,
                              const std::string& where = "placement");

/// One step of the chain that decides the makespan.
struct CriticalStep {
  bool is_transfer = false;
  std::uint32_t index = 0;  ///< a task, or an index into Simulation::transfers
  bool waited = false;      ///< it began when its device's previous item ended, not when its input arrived
};

/// From a step that began at time 0 to one that ends at the makespan, each beginning in the instant in which the one
/// before ends. Where input and device came free together, the input is named.
std::vector<CriticalStep> critical_path(const TaskGraph& graph, const Placement& placement,
                                        const Simulation& simulation);

}  // namespace turnpoint
