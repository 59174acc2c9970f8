// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/simulation/simulator_state.h"

namespace turnpoint {
namespace {

/// Without copying what is there, which nobody wants any more.
template <class T>
void make_room(std::vector<T>& items, std::size_t count) {
  if (items.capacity() >= count) return;
  items.clear();
  items.reserve(count);
}

void order(std::uint64_t& a, std::uint64_t& b) {
  const std::uint64_t low = std::min(a, b);
  b = std::max(a, b);
  a = low;
}

/// Most rows have two to four entries, in an order that nobody can predict: they are sorted without a branch.
void sort_keys(std::vector<std::uint64_t>& keys) {
  std::uint64_t* const k = keys.data();
  switch (keys.size()) {
    case 0:
    case 1: return;
    case 2: return order(k[0], k[1]);
    case 3: order(k[0], k[1]), order(k[1], k[2]), order(k[0], k[1]); return;
    case 4: order(k[0], k[1]), order(k[2], k[3]), order(k[0], k[2]), order(k[1], k[3]), order(k[1], k[2]); return;
    default: std::sort(keys.begin(), keys.end());
  }
}

}  // namespace

/// Room for the largest number of transfers, one per edge: memory that nothing is written to costs nothing, growing by
/// doubling touches three times what is needed.
void Simulator::State::reserve_arrays() {
  const std::size_t edges = graph->edge_count();
  make_room(tasks, task_count);
  make_room(waiting, task_count);
  make_room(buffers, task_count + edges);
  make_room(consumer, edges);
  make_room(input_buffer, edges + kInputsAhead);
  make_room(result->transfers, edges);
  make_room(result->sent, edges);
  make_room(result->run, task_count);
  make_room(result->start_s, task_count);
  make_room(result->end_s, task_count);
}

/// Regroups the row of one task by device, its own first, and makes a transfer of every other device's part. Rows are
/// in the order of task indices, and stay so within a part.
void Simulator::State::group_row(TaskIndex task) {
  const TaskGraph& g = *graph;
  const auto& device = placement->device;
  const EdgeIndex begin = g.out_begin[task], end = g.out_begin[task + 1];
  HotTask& hot = tasks[task];
  row_keys.resize(end - begin);
  for (EdgeIndex e = begin; e < end; ++e) {
    const std::uint32_t d = device[g.out_to[e]], rank = d == hot.device ? 0 : d + 1;
    row_keys[e - begin] = std::uint64_t(rank) << 32 | e;
  }
  sort_keys(row_keys);
  const auto edge_at = [&](std::uint32_t at) { return EdgeIndex(row_keys[at - begin]); };
  const auto rank_at = [&](std::uint32_t at) { return std::uint32_t(row_keys[at - begin] >> 32); };
  // Producers come in ascending order here and in the rows of incoming edges: `waiting` counts up to the next place.
  const auto read = [&](std::uint32_t at, std::uint32_t buffer) {
    const TaskIndex to = g.out_to[edge_at(at)];
    consumer[at] = to;
    input_buffer[g.in_begin[to] + waiting[to]++] = buffer;
  };
  std::uint32_t at = begin;
  for (; at < end && rank_at(at) == 0; ++at) read(at, task);
  hot.local_end = at;
  hot.transfer_begin = std::uint32_t(result->transfers.size());
  while (at < end) {
    const std::uint32_t first = at, rank = rank_at(at), copy = std::uint32_t(buffers.size());
    for (; at < end && rank_at(at) == rank; ++at) read(at, copy);
    add_transfer(task, rank - 1, first, at);
  }
  hot.transfer_end = std::uint32_t(result->transfers.size());
  buffers[task] = {hot.output_bytes, 0, (hot.local_end - begin) + (hot.transfer_end - hot.transfer_begin)};
}

void Simulator::State::add_transfer(TaskIndex task, std::uint32_t to, std::uint32_t begin, std::uint32_t end) {
  const TaskGraph& g = *graph;
  const std::uint32_t from = tasks[task].device;
  SentBytes sent(g);
  double seconds = 0;
  for (std::uint32_t at = begin; at < end; ++at) {
    const auto e = EdgeIndex(row_keys[at - g.out_begin[task]]);
    sent.add(e);
    if (!g.out_seconds.empty()) seconds = std::max(seconds, g.out_seconds[e]);
  }
  const std::int64_t bytes = sent.total();
  if (g.out_seconds.empty()) seconds = g.links.seconds(from, to, bytes);
  result->transfers.push_back({task, from, to, bytes, 0, seconds});
  buffers.push_back({bytes, begin, end - begin});
}

void Simulator::State::prepare() {
  const TaskGraph& g = *graph;
  const std::uint32_t device_count = placement->devices;
  task_count = std::uint32_t(g.task_count());
  reserve_arrays();
  tasks.resize(task_count);
  waiting.assign(task_count, 0);
  buffers.resize(task_count);
  consumer.resize(g.edge_count());
  input_buffer.resize(g.edge_count() + kInputsAhead);
  std::fill(input_buffer.end() - kInputsAhead, input_buffer.end(), 0);
  result->transfers.clear();
  result->devices.assign(device_count, {});
  for (TaskIndex t = 0; t < task_count; ++t) {
    const std::uint32_t d = placement->device[t];
    HotTask& hot = tasks[t];
    hot.duration = g.time_s[t] / g.speed_of(d);
    hot.output_bytes = g.output_bytes[t];
    hot.workspace_bytes = g.workspace_bytes[t];
    hot.device = d;
    hot.in_begin = g.in_begin[t];
    hot.in_end = g.in_begin[t + 1];
    hot.out_begin = g.out_begin[t];
    result->devices[d].persistent_bytes += g.persistent_bytes[t];
    group_row(t);
  }
  last_transfer = result->transfers.empty() ? 0 : std::uint32_t(result->transfers.size() - 1);
  prepare_queues();
  completions.reset(2 * device_count);
  flights.clear();
  to_start.resize(device_count);
  changed.resize(device_count);
  to_start_count = changed_count = 0;
  finished = 0;
}

/// Slices of `run` and `sent` by counting what each device will run and send.
void Simulator::State::prepare_queues() {
  const std::uint32_t device_count = placement->devices;
  result->run_begin.assign(device_count + 1, 0);
  result->send_begin.assign(device_count + 1, 0);
  for (const HotTask& task : tasks) {
    ++result->run_begin[task.device + 1];
    result->send_begin[task.device + 1] += task.transfer_end - task.transfer_begin;
  }
  result->run.resize(task_count);
  result->start_s.resize(task_count);
  result->end_s.resize(task_count);
  result->sent.resize(result->transfers.size());
  devices.assign(device_count, {});
  for (std::uint32_t d = 0; d < device_count; ++d) {
    result->run_begin[d + 1] += result->run_begin[d];
    result->send_begin[d + 1] += result->send_begin[d];
    Queue &compute = devices[d].compute, &send = devices[d].send;
    compute.head = compute.tail = result->run_begin[d];
    send.head = send.tail = result->send_begin[d];
    if (!fixed_order) continue;
    std::copy(placement->order[d].begin(), placement->order[d].end(), result->run.begin() + result->run_begin[d]);
    compute.tail = result->run_begin[d + 1];
  }
}

}  // namespace turnpoint
