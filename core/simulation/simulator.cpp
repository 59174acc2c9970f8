// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/simulator.h"

#include <algorithm>
#include <cassert>

#include "core/simulation/completions.h"
#include "core/simulation/deadlock.h"

namespace turnpoint {
namespace {

/// What the event loop needs of a task, in one cache line.
struct HotTask {
  double duration;
  std::int64_t output_bytes, workspace_bytes;
  std::uint32_t device;
  std::uint32_t waiting;   ///< inputs that are not there yet
  std::uint32_t releases;  ///< of its tensor, still to come; 0 from the start: held to the end
  std::uint32_t in_begin, in_end;
  std::uint32_t out_begin, local_end;  ///< its consumers on its own device, in `consumer`
  std::uint32_t transfer_begin, transfer_end;
};

struct HotTransfer {
  double duration;
  std::int64_t bytes;
  TaskIndex source;
  std::uint32_t to;
  std::uint32_t consumer_begin, consumer_end;
  std::uint32_t releases;
};

/// Completions of one round are handled by this key: at one instant tasks precede transfers, each by number; transfers
/// are numbered by source, then destination.
constexpr std::uint64_t kTransferKey = std::uint64_t(1) << 32;

/// A first-in first-out queue over a slice of an array in which everything is entered once. The item before `head` is
/// in progress while the queue is busy.
struct Queue {
  std::uint32_t head = 0, tail = 0;
  bool busy = false;
};

/// A transfer under way where nothing contends.
struct Flight {
  double end;
  std::uint32_t transfer;
};
struct LaterFlight {
  bool operator()(const Flight& a, const Flight& b) const { return a.end > b.end; }
};

}  // namespace

/// Everything the event loop touches, as arrays. A *buffer* is a piece of memory that its readers release: number t is
/// the tensor of task t on its own device, number tasks + k the copy that transfer k brings.
struct Simulator::State {
  const TaskGraph* graph = nullptr;
  const Placement* placement = nullptr;
  Simulation* result = nullptr;
  bool fixed_order = false, contention = true;
  std::uint32_t task_count = 0;

  std::vector<HotTask> tasks;
  std::vector<HotTransfer> transfers;
  std::vector<TaskIndex> consumer;          // rows of the graph, each regrouped by device: own device first
  std::vector<std::uint32_t> edge_buffer;   // by outgoing edge: the buffer that its consumer reads
  std::vector<std::uint32_t> input_buffer;  // the same by place among the incoming edges
  std::vector<std::uint64_t> row_keys;

  std::vector<Queue> compute, send;  // by device
  Completions completions;           // slot 2 d: what device d computes; 2 d + 1: what it sends
  std::vector<Flight> flights;       // a heap
  std::vector<std::uint64_t> round;
  std::vector<std::uint32_t> to_start;  // devices that may start something when the round is over
  std::vector<char> start_marked;
  std::vector<std::uint32_t> changed;  // devices whose memory changed at this instant
  std::vector<char> change_marked;
  std::vector<MemorySample> level;  // by device, without the persistent part
  std::uint32_t finished = 0;

  void prepare();
  void group_row(TaskIndex task);
  void add_transfer(TaskIndex task, std::uint32_t to, std::uint32_t begin, std::uint32_t end);
  void prepare_queues();
  template <bool Record>
  void loop();
  double next_instant() const;
  void collect_round(double now);
  void finish_task(TaskIndex task, double now);
  void finish_transfer(std::uint32_t transfer);
  void arrive(std::uint32_t begin, std::uint32_t end);
  void start_idle(double now);
  double start_transfer(std::uint32_t transfer, std::uint32_t from, double now);
  void release(std::uint32_t buffer, std::uint32_t device);
  template <bool Record>
  void close_instant(double now);

  // Memory latency is most of the cost of a large graph, and what a completion will touch is known when its task or
  // transfer starts, many events earlier. So each stage fetches what the next one needs.
  void foresee_task(TaskIndex task) const {
    const HotTask& hot = tasks[task];
    __builtin_prefetch(consumer.data() + hot.out_begin);
    __builtin_prefetch(input_buffer.data() + hot.in_begin);
    __builtin_prefetch(transfers.data() + hot.transfer_begin);
    __builtin_prefetch(result->start_s.data() + task, 1);
    __builtin_prefetch(result->end_s.data() + task, 1);
  }
  void foresee_end(const HotTask& hot) const {
    for (std::uint32_t at = hot.out_begin; at < hot.local_end; ++at) __builtin_prefetch(&tasks[consumer[at]], 1);
    for (std::uint32_t place = hot.in_begin; place < hot.in_end; ++place) {
      const std::uint32_t buffer = input_buffer[place];
      if (buffer < task_count)
        __builtin_prefetch(&tasks[buffer], 1);
      else
        __builtin_prefetch(&transfers[buffer - task_count], 1);
    }
  }
  void foresee_arrival(const HotTransfer& hot) const {
    __builtin_prefetch(&tasks[hot.source], 1);
    for (std::uint32_t at = hot.consumer_begin; at < hot.consumer_end; ++at)
      __builtin_prefetch(&tasks[consumer[at]], 1);
  }

  void mark_start(std::uint32_t device) {
    if (start_marked[device]) return;
    start_marked[device] = 1;
    to_start.push_back(device);
  }
  void mark_change(std::uint32_t device) {
    if (change_marked[device]) return;
    change_marked[device] = 1;
    changed.push_back(device);
  }
};

/// Regroups the row of one task by device, its own first, and makes a transfer of every other device's part. Rows are
/// in the order of task indices, and stay so within a part.
void Simulator::State::group_row(TaskIndex task) {
  const TaskGraph& g = *graph;
  const auto& device = placement->device;
  const EdgeIndex begin = g.out_begin[task], end = g.out_begin[task + 1];
  HotTask& hot = tasks[task];
  row_keys.resize(end - begin);
  bool sorted = true;
  for (EdgeIndex e = begin; e < end; ++e) {
    const std::uint32_t d = device[g.out_to[e]], rank = d == hot.device ? 0 : d + 1;
    row_keys[e - begin] = std::uint64_t(rank) << 32 | e;
    sorted &= e == begin || row_keys[e - begin - 1] < row_keys[e - begin];
  }
  if (!sorted) std::sort(row_keys.begin(), row_keys.end());
  const auto edge_at = [&](std::uint32_t at) { return EdgeIndex(row_keys[at - begin]); };
  const auto rank_at = [&](std::uint32_t at) { return std::uint32_t(row_keys[at - begin] >> 32); };
  for (std::uint32_t at = begin; at < end; ++at) consumer[at] = g.out_to[edge_at(at)];
  std::uint32_t at = begin;
  for (; at < end && rank_at(at) == 0; ++at) edge_buffer[edge_at(at)] = task;
  hot.local_end = at;
  hot.transfer_begin = std::uint32_t(transfers.size());
  while (at < end) {
    const std::uint32_t first = at, rank = rank_at(at);
    while (at < end && rank_at(at) == rank) ++at;
    add_transfer(task, rank - 1, first, at);
  }
  hot.transfer_end = std::uint32_t(transfers.size());
  hot.releases = (hot.local_end - begin) + (hot.transfer_end - hot.transfer_begin);
}

void Simulator::State::add_transfer(TaskIndex task, std::uint32_t to, std::uint32_t begin, std::uint32_t end) {
  const TaskGraph& g = *graph;
  const auto number = std::uint32_t(transfers.size());
  std::int64_t bytes = 0;
  double seconds = 0;
  for (std::uint32_t at = begin; at < end; ++at) {
    const auto e = EdgeIndex(row_keys[at - g.out_begin[task]]);
    bytes = std::max(bytes, g.out_bytes[e]);
    if (!g.out_seconds.empty()) seconds = std::max(seconds, g.out_seconds[e]);
    edge_buffer[e] = task_count + number;
  }
  if (g.out_seconds.empty()) seconds = g.links.seconds(tasks[task].device, to, bytes);
  transfers.push_back({seconds, bytes, task, to, begin, end, end - begin});
}

void Simulator::State::prepare() {
  const TaskGraph& g = *graph;
  const std::size_t edges = g.edge_count();
  const std::uint32_t devices = placement->devices;
  task_count = std::uint32_t(g.task_count());
  tasks.resize(task_count);
  transfers.clear();
  consumer.resize(edges);
  edge_buffer.resize(edges);
  input_buffer.resize(edges);
  result->devices.assign(devices, {});
  for (TaskIndex t = 0; t < task_count; ++t) {
    const std::uint32_t d = placement->device[t];
    HotTask& hot = tasks[t];
    hot.duration = g.time_s[t] / g.speed_of(d);
    hot.output_bytes = g.output_bytes[t];
    hot.workspace_bytes = g.workspace_bytes[t];
    hot.device = d;
    hot.in_begin = g.in_begin[t];
    hot.in_end = g.in_begin[t + 1];
    hot.waiting = hot.in_end - hot.in_begin;
    hot.out_begin = g.out_begin[t];
    result->devices[d].persistent_bytes += g.persistent_bytes[t];
    group_row(t);
  }
  for (std::size_t place = 0; place < edges; ++place) input_buffer[place] = edge_buffer[g.in_edge[place]];
  prepare_queues();
  completions.reset(2 * devices);
  flights.clear();
  to_start.clear();
  changed.clear();
  start_marked.assign(devices, 0);
  change_marked.assign(devices, 0);
  level.assign(devices, {});
  finished = 0;
}

/// Slices of `run` and `sent` by counting what each device will run and send.
void Simulator::State::prepare_queues() {
  const std::uint32_t devices = placement->devices;
  result->run_begin.assign(devices + 1, 0);
  result->send_begin.assign(devices + 1, 0);
  for (const HotTask& task : tasks) {
    ++result->run_begin[task.device + 1];
    result->send_begin[task.device + 1] += task.transfer_end - task.transfer_begin;
  }
  result->run.resize(task_count);
  result->start_s.resize(task_count);
  result->end_s.resize(task_count);
  result->transfers.resize(transfers.size());
  result->sent.resize(transfers.size());
  compute.assign(devices, {});
  send.assign(devices, {});
  for (std::uint32_t d = 0; d < devices; ++d) {
    result->run_begin[d + 1] += result->run_begin[d];
    result->send_begin[d + 1] += result->send_begin[d];
    compute[d].head = compute[d].tail = result->run_begin[d];
    send[d].head = send[d].tail = result->send_begin[d];
    if (!fixed_order) continue;
    std::copy(placement->order[d].begin(), placement->order[d].end(), result->run.begin() + result->run_begin[d]);
    compute[d].tail = result->run_begin[d + 1];
  }
}

/// Consumers [begin, end) have one input more; those that miss none enter their device's queue, by index.
void Simulator::State::arrive(std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t at = begin; at < end; ++at) {
    const TaskIndex t = consumer[at];
    if (--tasks[t].waiting != 0) continue;
    const std::uint32_t d = tasks[t].device;
    if (!fixed_order) result->run[compute[d].tail++] = t;
    foresee_task(t);
    mark_start(d);
  }
}

void Simulator::State::release(std::uint32_t buffer, std::uint32_t device) {
  if (buffer < task_count) {
    if (--tasks[buffer].releases == 0) level[device].activation_bytes -= tasks[buffer].output_bytes;
  } else {
    HotTransfer& copy = transfers[buffer - task_count];
    if (--copy.releases == 0) level[device].copy_bytes -= copy.bytes;
  }
}

void Simulator::State::finish_task(TaskIndex task, double now) {
  const HotTask& hot = tasks[task];
  ++finished;
  compute[hot.device].busy = false;
  mark_start(hot.device);
  mark_change(hot.device);
  level[hot.device].workspace_bytes -= hot.workspace_bytes;
  for (std::uint32_t place = hot.in_begin; place < hot.in_end; ++place) release(input_buffer[place], hot.device);
  for (std::uint32_t k = hot.transfer_begin; k < hot.transfer_end; ++k) {
    result->sent[send[hot.device].tail++] = k;
    __builtin_prefetch(result->transfers.data() + k, 1);
    __builtin_prefetch(transfers.data() + k, 1);
    if (contention) continue;
    flights.push_back({start_transfer(k, hot.device, now), k});
    std::push_heap(flights.begin(), flights.end(), LaterFlight());
  }
  arrive(hot.out_begin, hot.local_end);
}

void Simulator::State::finish_transfer(std::uint32_t transfer) {
  const HotTransfer& hot = transfers[transfer];
  const std::uint32_t from = tasks[hot.source].device;
  mark_change(from);
  release(hot.source, from);
  if (contention) {
    send[from].busy = false;
    mark_start(from);
  }
  arrive(hot.consumer_begin, hot.consumer_end);
}

/// Returns when it will end.
double Simulator::State::start_transfer(std::uint32_t transfer, std::uint32_t from, double now) {
  const HotTransfer& hot = transfers[transfer];
  const double end = now + hot.duration;
  result->transfers[transfer] = {hot.source, from, hot.to, hot.bytes, now, end};
  level[hot.to].copy_bytes += hot.bytes;
  mark_change(hot.to);
  result->devices[from].send_s += hot.duration;
  result->devices[from].sent_bytes += hot.bytes;
  foresee_arrival(hot);
  return end;
}

/// After a round: every marked device starts what it can.
void Simulator::State::start_idle(double now) {
  for (const std::uint32_t d : to_start) {
    start_marked[d] = 0;
    Queue& work = compute[d];
    if (!work.busy) {
      double end = Completions::kNever;
      if (work.head < work.tail && tasks[result->run[work.head]].waiting == 0) {
        const TaskIndex t = result->run[work.head++];
        const HotTask& hot = tasks[t];
        work.busy = true;
        end = now + hot.duration;
        result->start_s[t] = now;
        result->end_s[t] = end;
        result->devices[d].busy_s += hot.duration;
        level[d].activation_bytes += hot.output_bytes;
        level[d].workspace_bytes += hot.workspace_bytes;
        mark_change(d);
        foresee_end(hot);
      }
      completions.set(2 * d, end);
    }
    Queue& tensors = send[d];
    if (contention && !tensors.busy) {
      tensors.busy = tensors.head < tensors.tail;
      completions.set(2 * d + 1,
                      tensors.busy ? start_transfer(result->sent[tensors.head++], d, now) : Completions::kNever);
    }
  }
  to_start.clear();
}

/// All completions of the instant and everything that began in it are counted: what began and ended in it is gone.
template <bool Record>
void Simulator::State::close_instant(double now) {
  for (const std::uint32_t d : changed) {
    change_marked[d] = 0;
    SimulatedDevice& device = result->devices[d];
    const std::int64_t bytes =
        device.persistent_bytes + level[d].activation_bytes + level[d].copy_bytes + level[d].workspace_bytes;
    if (bytes > device.peak_bytes) {
      device.peak_bytes = bytes;
      device.peak_at_s = now;
    }
    if constexpr (Record) {
      level[d].time_s = now;
      result->memory[d].push_back(level[d]);
    }
  }
  changed.clear();
}

double Simulator::State::next_instant() const {
  return flights.empty() ? completions.earliest() : std::min(completions.earliest(), flights.front().end);
}

/// Everything that completes now, in the order of rule 3. Slots stay as they are until start_idle() sets them anew:
/// each of them is idle by then.
void Simulator::State::collect_round(double now) {
  round.clear();
  if (completions.earliest() == now)
    completions.each_at(now, [&](std::uint32_t slot) {
      const std::uint32_t d = slot / 2;
      if (slot % 2 == 0)
        round.push_back(result->run[compute[d].head - 1]);
      else
        round.push_back(kTransferKey | result->sent[send[d].head - 1]);
    });
  while (!flights.empty() && flights.front().end == now) {
    round.push_back(kTransferKey | flights.front().transfer);
    std::pop_heap(flights.begin(), flights.end(), LaterFlight());
    flights.pop_back();
  }
  if (round.size() > 1) std::sort(round.begin(), round.end());
}

template <bool Record>
void Simulator::State::loop() {
  double now = 0;
  for (std::uint32_t d = 0; d < placement->devices; ++d) {
    result->devices[d].peak_bytes = result->devices[d].persistent_bytes;
    if constexpr (Record) mark_change(d);  // so that every device has a sample at time 0
  }
  for (TaskIndex t = 0; t < task_count; ++t) {
    if (tasks[t].waiting != 0) continue;
    const std::uint32_t d = tasks[t].device;
    if (!fixed_order) result->run[compute[d].tail++] = t;
    mark_start(d);
  }
  start_idle(now);
  for (double next = next_instant(); next != Completions::kNever; next = next_instant()) {
    if (next > now) {
      close_instant<Record>(now);
      now = next;
    }
    // One round; what it starts completes in a later round, even at this instant.
    collect_round(now);
    for (const std::uint64_t key : round)
      if (key < kTransferKey)
        finish_task(TaskIndex(key), now);
      else
        finish_transfer(std::uint32_t(key - kTransferKey));
    start_idle(now);
  }
  // At the last instant everything ends, so nothing that began in it counts.
  result->makespan_s = now;
}

Simulator::Simulator() : state_(std::make_unique<State>()) {}
Simulator::~Simulator() = default;

Expected<void> Simulator::run(const TaskGraph& graph, const Placement& placement, Simulation& result,
                              bool memory_over_time, const std::string& where) {
  if (auto good = check_placement(graph, placement, where); !good) return good.error();
  State& s = *state_;
  s.graph = &graph;
  s.placement = &placement;
  s.result = &result;
  s.fixed_order = !placement.order.empty();
  s.contention = graph.links.contention == TaskLinks::Contention::sender;
  s.prepare();
  result.memory.clear();
  if (memory_over_time) {
    result.memory.resize(placement.devices);
    s.loop<true>();
  } else {
    s.loop<false>();
  }
  if (s.finished == s.task_count) return {};
  assert(s.fixed_order);
  std::vector<std::uint32_t> next(placement.devices);
  for (std::uint32_t d = 0; d < placement.devices; ++d) next[d] = s.compute[d].head - result.run_begin[d];
  return bad_input(describe_deadlock(graph, placement, next), where);
}

Expected<Simulation> simulate(const TaskGraph& graph, const Placement& placement, bool memory_over_time,
                              const std::string& where) {
  Simulation result;
  if (auto done = Simulator().run(graph, placement, result, memory_over_time, where); !done) return done.error();
  return result;
}

}  // namespace turnpoint
