// SPDX-License-Identifier: Apache-2.0
// What the simulator keeps between and during simulations; private to core/simulation. prepare() lays everything out
// (simulator_prepare.cpp), the event loop runs over it (simulator.cpp).
//
// Memory latency is most of the cost of a large graph, so what an event asks of everybody (how many inputs are missing,
// how many readers are left) is apart from what only a start or an end needs, and nothing is kept twice.
#pragma once

#include <cstdint>
#include <vector>

#include "core/simulation/completions.h"
#include "core/simulation/simulator.h"

namespace turnpoint {

/// What a task's start and end need, in one cache line.
struct alignas(64) HotTask {
  double duration;
  std::int64_t output_bytes, workspace_bytes;
  std::uint32_t device;
  std::uint32_t in_begin, in_end;
  std::uint32_t out_begin, local_end;  ///< its consumers on its own device, in `consumer`
  std::uint32_t transfer_begin, transfer_end;
};

/// A piece of memory that its readers release. Number t is the tensor of task t on its own device, number tasks + k the
/// copy that transfer k brings.
struct Buffer {
  std::int64_t bytes;
  std::uint32_t consumer_begin;  ///< of a copy: those that wait for its transfer, in `consumer`
  /// Still to come; 0 from the start: held to the end. Of a copy also how many wait for it, since all of them read it
  /// after it arrived.
  std::uint32_t releases;
};

/// A first-in first-out queue over a slice of an array in which everything is entered once. The item before `head` is
/// in progress while the queue is busy.
struct Queue {
  std::uint32_t head = 0, tail = 0;
  bool busy = false;
};

struct HotDevice {
  Queue compute, send;
  MemorySample level;          ///< without the persistent part
  bool start_marked = false;   ///< it may start something when the round is over
  bool change_marked = false;  ///< its memory changed at this instant
};

/// A transfer under way where nothing contends.
struct Flight {
  double end;
  std::uint32_t transfer;
};

struct Simulator::State {
  static constexpr std::size_t kInputsAhead = 3;

  const TaskGraph* graph = nullptr;
  const Placement* placement = nullptr;
  Simulation* result = nullptr;
  bool fixed_order = false, contention = true;
  std::uint32_t task_count = 0, last_transfer = 0;

  std::vector<HotTask> tasks;
  std::vector<std::uint32_t> waiting;  // by task: inputs that are not there yet
  std::vector<Buffer> buffers;         // of tasks, then of transfers
  std::vector<TaskIndex> consumer;     // rows of the graph, each regrouped by device: own device first
  // By place among the incoming edges: the buffer that the consumer reads. Ends with some zeros, so that the first few
  // of any task can be looked at.
  std::vector<std::uint32_t> input_buffer;
  std::vector<std::uint64_t> row_keys;

  std::vector<HotDevice> devices;
  Completions completions;      // slot 2 d: what device d computes; 2 d + 1: what it sends
  std::vector<Flight> flights;  // a heap
  std::vector<std::uint64_t> round;
  std::vector<std::uint32_t> to_start, changed;  // the marked devices, as many as the counts say
  std::uint32_t to_start_count = 0, changed_count = 0;
  std::uint32_t finished = 0;

  void prepare();
  template <bool Record>
  void loop();

 private:
  void reserve_arrays();
  void group_row(TaskIndex task);
  void add_transfer(TaskIndex task, std::uint32_t to, std::uint32_t begin, std::uint32_t end);
  void prepare_queues();

  double next_instant() const;
  void collect_round(double now);
  void finish_task(TaskIndex task, double now);
  void finish_transfer(std::uint32_t transfer);
  void arrive(std::uint32_t begin, std::uint32_t end);
  void start_idle(double now);
  double start_task(TaskIndex task, double now);
  double start_transfer(std::uint32_t transfer, double now);
  void release(std::uint32_t buffer, std::uint32_t device);
  template <bool Record>
  void close_instant(double now);

  void foresee_rows(TaskIndex task, const HotTask& hot) const;
  void foresee_transfer(std::uint32_t transfer) const;
  void foresee_neighbours(TaskIndex task) const;

  void mark_start(std::uint32_t device) {
    if (devices[device].start_marked) return;
    devices[device].start_marked = true;
    to_start[to_start_count++] = device;
  }
  void mark_change(std::uint32_t device) {
    if (devices[device].change_marked) return;
    devices[device].change_marked = true;
    changed[changed_count++] = device;
  }
};

}  // namespace turnpoint
