// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/ranked.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace turnpoint {
namespace {

/// Tasks before transfers, each by number, as rule 3 has it.
constexpr std::uint64_t kSendingKey = std::uint64_t(1) << 32;

/// Bounds are sums in another order than the simulation's own; so far above a limit they are above it for certain.
constexpr double kRounding = 1 + 1e-12;

/// Falls as the number rises.
std::uint32_t falling(float rank) {
  const auto bits = std::bit_cast<std::uint32_t>(rank + 0.0f);
  const std::uint32_t rising = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return ~rising;
}

}  // namespace

RankedSimulator::RankedSimulator(const TaskGraph& graph, std::uint32_t devices)
    : graph_(graph),
      device_count_(devices),
      task_count_(std::uint32_t(graph.task_count())),
      contention_(graph.links.contention == TaskLinks::Contention::sender) {
  const TaskGraph& g = graph_;
  const std::size_t edges = g.edge_count();
  tasks_.resize(task_count_);
  transfers_.resize(edges);
  consumer_.resize(edges);
  in_place_.resize(edges);
  input_buffer_.resize(edges);
  releases_.resize(task_count_ + edges);
  inputs_.resize(task_count_);
  waiting_.resize(task_count_);
  start_s_.resize(task_count_);
  end_s_.resize(task_count_);
  ready_s_.resize(task_count_);
  cause_.resize(task_count_);
  ran_before_.resize(task_count_);
  transfer_start_s_.resize(edges);
  sent_before_.resize(edges);
  ended_.reserve(task_count_);
  row_changed_.assign(task_count_, 0);
  changed_rows_.reserve(task_count_);
  devices_.resize(devices);
  load_s_.resize(devices);
  wanted_s_.assign(devices, -1);
  completions_.reset(2 * devices);
  double fastest = 0;
  for (std::uint32_t d = 0; d < devices; ++d) fastest = std::max(fastest, g.speed_of(d));
  for (EdgeIndex place = 0; place < edges; ++place) in_place_[g.in_edge[place]] = place;
  for (std::uint32_t place = 0; place < task_count_; ++place) {
    const TaskIndex t = g.topological[place];
    Task& task = tasks_[t];
    task = {g.time_s[t] / g.speed_of(0), g.output_bytes[t], g.workspace_bytes[t], 0, 0, 0, 0, 0};
    task.key = std::uint64_t(falling(0)) << 32 | place;
    inputs_[t] = g.in_begin[t + 1] - g.in_begin[t];
    devices_[0].persistent += g.persistent_bytes[t];
    change_row(t);
  }
  tail_s_.assign(task_count_, 0);
  for (std::uint32_t place = task_count_; place-- > 0;) {
    const TaskIndex t = g.topological[place];
    for (const TaskIndex to : g.successors(t)) tail_s_[t] = std::max(tail_s_[t], g.time_s[to] / fastest + tail_s_[to]);
  }
}

void RankedSimulator::move(TaskIndex task, std::uint32_t device) {
  Task& moved = tasks_[task];
  if (moved.device == device) return;
  devices_[moved.device].persistent -= graph_.persistent_bytes[task];
  devices_[device].persistent += graph_.persistent_bytes[task];
  moved.device = device;
  moved.duration = graph_.time_s[task] / graph_.speed_of(device);
  change_row(task);
  for (const TaskIndex from : graph_.predecessors(task)) change_row(from);
}

void RankedSimulator::set_rank(TaskIndex task, float rank) {
  tasks_[task].key = std::uint64_t(falling(rank)) << 32 | std::uint32_t(tasks_[task].key);
}

/// As Simulator::State::group_row() has it: parts by rising device, each in the order of task indices.
void RankedSimulator::group_row(TaskIndex t) {
  const TaskGraph& g = graph_;
  const EdgeIndex begin = g.out_begin[t], end = g.out_begin[t + 1];
  Task& task = tasks_[t];
  row_keys_.resize(end - begin);
  bool local = true;
  for (EdgeIndex e = begin; e < end; ++e) {
    const std::uint32_t d = tasks_[g.out_to[e]].device, rank = d == task.device ? 0 : d + 1;
    row_keys_[e - begin] = std::uint64_t(rank) << 32 | e;
    local = local && rank == 0;
  }
  if (!local) std::sort(row_keys_.begin(), row_keys_.end());
  const auto edge_at = [&](std::uint32_t at) { return EdgeIndex(row_keys_[at - begin]); };
  const auto rank_at = [&](std::uint32_t at) { return std::uint32_t(row_keys_[at - begin] >> 32); };
  const auto read = [&](std::uint32_t at, std::uint32_t buffer) {
    consumer_[at] = g.out_to[edge_at(at)];
    input_buffer_[in_place_[edge_at(at)]] = buffer;
  };
  std::uint32_t at = begin, next = begin;
  for (; at < end && rank_at(at) == 0; ++at) read(at, t);
  task.local_end = at;
  while (at < end) {
    const std::uint32_t first = at, rank = rank_at(at);
    SentBytes sent(g);
    double seconds = 0;
    for (; at < end && rank_at(at) == rank; ++at) {
      read(at, task_count_ + next);
      sent.add(edge_at(at));
      if (!g.out_seconds.empty()) seconds = std::max(seconds, g.out_seconds[edge_at(at)]);
    }
    const std::int64_t bytes = sent.total();
    if (g.out_seconds.empty()) seconds = g.links.seconds(task.device, rank - 1, bytes);
    transfers_[next++] = {seconds, bytes, t, rank - 1, first, at};
  }
  task.transfer_end = next;
  task.releases = (task.local_end - begin) + (next - begin);
}

void RankedSimulator::prepare_rows() {
  for (const TaskIndex t : changed_rows_) {
    group_row(t);
    row_changed_[t] = 0;
  }
  changed_rows_.clear();
}

void RankedSimulator::reset() {
  for (Device& device : devices_) {
    device.held = device.persistent;
    device.peak = device.persistent;
    device.total_s = 0;
    device.running = device.sending = device.ran = device.sent = kNone;
    device.ready.clear();
    device.to_send.clear();
    device.next_send = 0;
    device.marked = device.changed = false;
  }
  std::copy(inputs_.begin(), inputs_.end(), waiting_.begin());
  for (const Task& task : tasks_) devices_[task.device].total_s += task.duration;
  reached_bytes_ = 0;
  for (Device& device : devices_) {
    device.left_s = device.total_s;
    reached_bytes_ = std::max(reached_bytes_, device.peak);
  }
  for (std::uint32_t slot = 0; slot < 2 * device_count_; ++slot)
    if (completions_.of(slot) != Completions::kNever) completions_.set(slot, Completions::kNever);
  flights_.clear();
  ended_.clear();
  marked_.clear();
  changed_.clear();
}

inline void RankedSimulator::mark(std::uint32_t device) {
  if (devices_[device].marked) return;
  devices_[device].marked = true;
  marked_.push_back(device);
}

inline void RankedSimulator::note_change(std::uint32_t device) {
  if (devices_[device].changed) return;
  devices_[device].changed = true;
  changed_.push_back(device);
}

inline void RankedSimulator::make_ready(TaskIndex task, std::uint32_t cause, double now) {
  ready_s_[task] = now;
  cause_[task] = cause;
  Device& device = devices_[tasks_[task].device];
  device.ready.push_back(tasks_[task].key);
  std::push_heap(device.ready.begin(), device.ready.end(), std::greater<>());
  mark(tasks_[task].device);
}

inline void RankedSimulator::arrive(std::uint32_t begin, std::uint32_t end, std::uint32_t cause, double now) {
  for (std::uint32_t at = begin; at < end; ++at)
    if (--waiting_[consumer_[at]] == 0) make_ready(consumer_[at], cause, now);
}

/// Counts of releases are set where a buffer begins, so that nothing has to be laid out before a run.
inline void RankedSimulator::release(std::uint32_t buffer, std::uint32_t device) {
  if (--releases_[buffer] != 0) return;
  devices_[device].held -= buffer < task_count_ ? tasks_[buffer].output_bytes : transfers_[buffer - task_count_].bytes;
}

void RankedSimulator::begin_transfer(std::uint32_t transfer, double now, std::uint32_t before) {
  transfer_start_s_[transfer] = now;
  sent_before_[transfer] = before;
  const Transfer& begun = transfers_[transfer];
  releases_[task_count_ + transfer] = begun.end - begun.begin;
  devices_[begun.to].held += begun.bytes;
  note_change(begun.to);
}

void RankedSimulator::finish_task(TaskIndex t, double now) {
  const Task& task = tasks_[t];
  Device& device = devices_[task.device];
  end_s_[t] = now;
  ended_.push_back(t);
  device.running = kNone;
  mark(task.device);
  note_change(task.device);
  device.held -= task.workspace_bytes;
  for (EdgeIndex place = graph_.in_begin[t]; place < graph_.in_begin[t + 1]; ++place)
    release(input_buffer_[place], task.device);
  for (std::uint32_t k = graph_.out_begin[t]; k < task.transfer_end; ++k) {
    if (contention_) {
      device.to_send.push_back(k);
      continue;
    }
    begin_transfer(k, now, kNone);
    flights_.push_back({now + transfers_[k].duration, k, k});
    std::push_heap(flights_.begin(), flights_.end());
  }
  arrive(graph_.out_begin[t], task.local_end, t, now);
}

void RankedSimulator::finish_transfer(std::uint32_t transfer, double now) {
  const Transfer& done = transfers_[transfer];
  const std::uint32_t from = tasks_[done.source].device;
  note_change(from);
  release(done.source, from);
  if (contention_) {
    devices_[from].sending = kNone;
    mark(from);
  }
  arrive(done.begin, done.end, task_count_ + transfer, now);
}

/// After a round every marked device starts what it can. False: the cutoff is reached.
bool RankedSimulator::start_idle(double now, const Cutoff& cutoff) {
  bool late = false;
  for (const std::uint32_t d : marked_) {
    Device& device = devices_[d];
    device.marked = false;
    if (device.running == kNone) {
      double end = Completions::kNever;
      if (!device.ready.empty()) {
        std::pop_heap(device.ready.begin(), device.ready.end(), std::greater<>());
        const TaskIndex t = graph_.topological[std::uint32_t(device.ready.back())];
        device.ready.pop_back();
        const Task& task = tasks_[t];
        end = now + task.duration;
        late = late || std::max(end + tail_s_[t], now + device.left_s) > cutoff.time_s * kRounding;
        device.left_s -= task.duration;
        device.running = t;
        ran_before_[t] = device.ran;
        device.ran = t;
        start_s_[t] = now;
        releases_[t] = task.releases;
        device.held += task.output_bytes + task.workspace_bytes;
        note_change(d);
      }
      if (end != completions_.of(2 * d)) completions_.set(2 * d, end);
    }
    if (device.sending == kNone) {
      double end = Completions::kNever;
      if (device.next_send < device.to_send.size()) {
        device.sending = device.to_send[device.next_send++];
        end = now + transfers_[device.sending].duration;
        begin_transfer(device.sending, now, device.sent);
        device.sent = device.sending;
      }
      if (end != completions_.of(2 * d + 1)) completions_.set(2 * d + 1, end);
    }
  }
  marked_.clear();
  return !late;
}

void RankedSimulator::close_instant() {
  for (const std::uint32_t d : changed_) {
    Device& device = devices_[d];
    device.changed = false;
    device.peak = std::max(device.peak, device.held);
    reached_bytes_ = std::max(reached_bytes_, device.peak);
  }
  changed_.clear();
}

bool RankedSimulator::run(const Cutoff& cutoff) {
  prepare_rows();
  reset();
  for (TaskIndex t = 0; t < task_count_; ++t)
    if (waiting_[t] == 0) make_ready(t, kNone, 0);
  double now = 0;
  bool late = !start_idle(now, cutoff);
  for (;;) {
    const double next =
        flights_.empty() ? completions_.earliest() : std::min(completions_.earliest(), flights_.front().end);
    if (next == Completions::kNever) break;
    if (next > now) {
      close_instant();
      now = next;
    }
    // What is late stays late.
    if (late && reached_bytes_ >= cutoff.bytes) return false;
    round_.clear();
    if (completions_.earliest() == now)
      completions_.each_at(now, [&](std::uint32_t slot) {
        const Device& device = devices_[slot / 2];
        round_.push_back(slot % 2 == 0 ? device.running : kSendingKey | device.sending);
      });
    while (!flights_.empty() && flights_.front().end == now) {
      round_.push_back(kSendingKey | flights_.front().transfer);
      std::pop_heap(flights_.begin(), flights_.end());
      flights_.pop_back();
    }
    if (round_.size() > 1) std::sort(round_.begin(), round_.end());
    for (const std::uint64_t key : round_)
      if (key < kSendingKey)
        finish_task(TaskIndex(key), now);
      else
        finish_transfer(std::uint32_t(key - kSendingKey), now);
    if (!start_idle(now, cutoff)) late = true;
  }
  // At the last instant everything ends, so nothing that began in it counts.
  makespan_s_ = now;
  return true;
}

std::int64_t RankedSimulator::largest_peak() const {
  std::int64_t most = 0;
  for (const Device& device : devices_) most = std::max(most, device.peak);
  return most;
}

double RankedSimulator::max_load_s() {
  prepare_rows();
  std::fill(load_s_.begin(), load_s_.end(), 0.0);
  const TaskGraph& g = graph_;
  for (TaskIndex t = 0; t < task_count_; ++t) {
    const Task& task = tasks_[t];
    load_s_[task.device] += task.duration;
    double leaves = 0;
    for (std::uint32_t k = g.out_begin[t]; k < task.transfer_end; ++k) {
      // The longest edge, not the sum of the tensors that go together.
      double seconds = transfers_[k].duration;
      if (!g.out_tensor.empty()) {
        seconds = 0;
        for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e)
          if (tasks_[g.out_to[e]].device == transfers_[k].to)
            seconds = std::max(seconds, g.transfer_s(e, task.device, transfers_[k].to));
      }
      load_s_[transfers_[k].to] += seconds;
      leaves = std::max(leaves, seconds);
    }
    load_s_[task.device] += leaves;
  }
  return *std::max_element(load_s_.begin(), load_s_.end());
}

void RankedSimulator::critical_path(std::vector<Step>& steps) const {
  steps.clear();
  if (task_count_ == 0) return;
  // What ends last is a task: a transfer has somebody who waits for it.
  std::uint32_t at = ended_.back();
  while (at != kNone) {
    if (at < task_count_) {
      const bool waited = start_s_[at] > ready_s_[at];
      steps.push_back({at, kNone, waited, waited ? ran_before_[at] : kNone});
      at = waited ? ran_before_[at] : cause_[at];
    } else {
      const std::uint32_t k = at - task_count_;
      const Transfer& transfer = transfers_[k];
      const bool waited = transfer_start_s_[k] > end_s_[transfer.source];
      const std::uint32_t before = sent_before_[k];
      steps.push_back({transfer.source, transfer.to, waited, waited ? transfers_[before].source : kNone});
      at = waited ? task_count_ + before : transfer.source;
    }
  }
}

void RankedSimulator::store(Placement& placement) const {
  placement.devices = device_count_;
  placement.device.resize(task_count_);
  for (TaskIndex t = 0; t < task_count_; ++t) placement.device[t] = tasks_[t].device;
  placement.order.resize(device_count_);
  for (auto& order : placement.order) order.clear();
  for (const TaskIndex t : ended_) placement.order[tasks_[t].device].push_back(t);
}

}  // namespace turnpoint
