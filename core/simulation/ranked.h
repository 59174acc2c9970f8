// SPDX-License-Identifier: Apache-2.0
// Many simulations of one graph, for searches that change little from one placement to the next: every device runs,
// whenever it is idle, the ready task of the highest rank. Rules and results are the simulator's
// (resources/manual/simulator.md): the order that comes out, given to it, has the same start and end of every task and
// the same peaks, to the last bit.
//
// What a placement decides about rows of the graph (who is sent what) is kept between runs, and only the rows of tasks
// that moved, and of their producers, are made anew. No run allocates. A run ends early where it is proven that it
// would be of no use (Cutoff).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/model/placement.h"
#include "core/model/task_graph.h"
#include "core/simulation/completions.h"

namespace turnpoint {

/// Not thread-safe. The graph outlives it and does not change.
class RankedSimulator {
 public:
  /// All tasks on device 0, of equal rank: producers first. Devices are no more than the graph knows.
  RankedSimulator(const TaskGraph& graph, std::uint32_t devices);

  std::uint32_t devices() const { return device_count_; }
  std::uint32_t device_of(TaskIndex task) const { return tasks_[task].device; }
  void move(TaskIndex task, std::uint32_t device);
  /// Higher runs first; of equal ones whoever comes first in the topological order.
  void set_rank(TaskIndex task, float rank);

  /// A run may stop as soon as it is certain that it ends later than `time_s` and some device holds at least `bytes` at
  /// one instant.
  struct Cutoff {
    double time_s = std::numeric_limits<double>::infinity();
    std::int64_t bytes = 0;
  };
  /// Whether it came to its end; else what follows is not to be asked.
  bool run(const Cutoff& cutoff);
  double makespan_s() const { return makespan_s_; }
  std::int64_t peak_bytes(std::uint32_t device) const { return devices_[device].peak; }
  std::int64_t largest_peak() const;

  // Of the placement, whether or not it was run.
  std::int64_t persistent_bytes(std::uint32_t device) const { return devices_[device].persistent; }
  /// Seconds, as max_load_s() of placement methods counts them.
  double max_load_s();
  std::span<const double> loads() const { return load_s_; }  ///< by device, as max_load_s() found them last

  // Of the last run that came to its end.
  /// With the order in which devices ran their tasks.
  void store(Placement& placement) const;
  double start_s(TaskIndex task) const { return start_s_[task]; }
  double end_s(TaskIndex task) const { return end_s_[task]; }
  double ready_s(TaskIndex task) const { return ready_s_[task]; }           ///< when its last input was there
  TaskIndex ran_before(TaskIndex task) const { return ran_before_[task]; }  ///< on its device; kNone: none
  /// One step of the chain that decides the makespan, as critical_path() has it of a Simulation.
  struct Step {
    TaskIndex task = 0;        ///< that runs, or whose tensor is sent
    std::uint32_t to = kNone;  ///< the device it is sent to; kNone: the task runs
    bool waited = false;       ///< it began when its device's previous item ended, not when its input arrived
    TaskIndex before = kNone;  ///< where it waited: the task that ran before, or whose tensor was sent before
  };
  /// From the end to the start.
  void critical_path(std::vector<Step>& steps) const;
  /// In the order in which tasks ended; those of one device in the order in which they ran.
  std::span<const TaskIndex> ended() const { return ended_; }

 private:
  struct Task {
    double duration;
    std::int64_t output_bytes, workspace_bytes;
    std::uint64_t key;  ///< lower runs first; the low half is the place in the topological order
    std::uint32_t device;
    std::uint32_t local_end;     ///< its consumers on its own device are consumer_[out_begin ... local_end)
    std::uint32_t transfer_end;  ///< its transfers are transfers_[out_begin ... transfer_end)
    std::uint32_t releases;      ///< how often its tensor is released; 0: held to the end
  };
  struct Transfer {
    double duration;
    std::int64_t bytes;
    TaskIndex source;
    std::uint32_t to, begin, end;  ///< in consumer_
  };
  struct Device {
    std::int64_t persistent = 0, held = 0, peak = 0;
    double total_s = 0, left_s = 0;  ///< of tasks; not started yet
    std::uint32_t running = kNone, sending = kNone;
    std::uint32_t ran = kNone, sent = kNone;  ///< last
    std::vector<std::uint64_t> ready;         ///< a heap of keys
    std::vector<std::uint32_t> to_send;       ///< transfers, first in first out
    std::size_t next_send = 0;
    bool marked = false, changed = false;
  };
  struct Flight {
    double end;
    std::uint32_t order, transfer;
    bool operator<(const Flight& other) const { return end != other.end ? end > other.end : order > other.order; }
  };

  void group_row(TaskIndex task);
  void prepare_rows();
  void reset();
  void change_row(TaskIndex task) {
    if (row_changed_[task]) return;
    row_changed_[task] = 1;
    changed_rows_.push_back(task);
  }
  void mark(std::uint32_t device);
  void note_change(std::uint32_t device);
  void make_ready(TaskIndex task, std::uint32_t cause, double now);
  void arrive(std::uint32_t begin, std::uint32_t end, std::uint32_t cause, double now);
  void release(std::uint32_t buffer, std::uint32_t device);
  void finish_task(TaskIndex task, double now);
  void finish_transfer(std::uint32_t transfer, double now);
  void begin_transfer(std::uint32_t transfer, double now, std::uint32_t before);
  bool start_idle(double now, const Cutoff& cutoff);
  void close_instant();

  const TaskGraph& graph_;
  std::uint32_t device_count_, task_count_;
  bool contention_;
  std::vector<Task> tasks_;
  std::vector<Transfer> transfers_;          // by place among the edges: those of a task begin where its row begins
  std::vector<TaskIndex> consumer_;          // rows, each regrouped by device, the own one first
  std::vector<EdgeIndex> in_place_;          // by edge: its place among the incoming edges
  std::vector<std::uint32_t> input_buffer_;  // by place among the incoming edges: what the consumer reads
  std::vector<double> tail_s_;               // by task: least time from its end to the end of all
  std::vector<std::uint32_t> inputs_;        // by task
  std::vector<char> row_changed_;
  std::vector<TaskIndex> changed_rows_;
  std::vector<std::uint64_t> row_keys_;

  std::vector<Device> devices_;
  std::vector<std::uint32_t> waiting_;   // by task: inputs that are not there yet
  std::vector<std::uint32_t> releases_;  // by buffer: still to come. Buffers: tasks, then transfers
  std::vector<double> start_s_, end_s_;
  // Why things began when they did. Of a task: when and by what (a buffer) its last input came, and what ran before.
  std::vector<double> ready_s_, transfer_start_s_;
  std::vector<std::uint32_t> cause_, ran_before_, sent_before_;
  std::vector<TaskIndex> ended_;
  Completions completions_;  // slot 2 d: what device d computes; 2 d + 1: what it sends
  std::vector<Flight> flights_;
  std::vector<std::uint64_t> round_;
  std::vector<std::uint32_t> marked_, changed_;
  std::vector<double> load_s_, wanted_s_;
  std::int64_t reached_bytes_ = 0;
  double makespan_s_ = 0;
};

}  // namespace turnpoint
