// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/simulator.h"

#include <algorithm>
#include <cassert>

#include "core/simulation/deadlock.h"
#include "core/simulation/simulator_state.h"

namespace turnpoint {
namespace {

/// Completions of one round are handled by this key: at one instant tasks precede transfers, each by number; transfers
/// are numbered by source, then destination.
constexpr std::uint64_t kTransferKey = std::uint64_t(1) << 32;

struct LaterFlight {
  bool operator()(const Flight& a, const Flight& b) const { return a.end > b.end; }
};

/// Inlined by order: the compiler takes a function that does nothing but prefetch for one without effect, and drops it.
template <bool Write = false, class T>
[[gnu::always_inline]] inline void fetch(const T* item) {
  __builtin_prefetch(item, Write);
}

/// How many tasks ahead in the graph's own numbering each stage of foresee_neighbours() looks. Far enough for memory,
/// near enough that it is still in the cache when its turn comes. Multiples of 32 and more: graphs repeat themselves in
/// layers, and a task that is like the present one is treated without surprise to the processor.
constexpr TaskIndex kFar = 256, kMiddle = 192, kNear = 64;

}  // namespace

// Memory latency is most of the cost of a large graph. What an event will touch is fetched in time: by neighbourhood,
// since tasks that were numbered after another tend to run a while after it, and by what has just been decided, since
// a completion is known when its task or transfer starts. (Where the numbers say nothing, only the latter helps.)

[[gnu::always_inline]] inline void Simulator::State::foresee_rows(TaskIndex task, const HotTask& hot) const {
  fetch(consumer.data() + hot.out_begin);
  fetch(input_buffer.data() + hot.in_begin);
  fetch<true>(result->start_s.data() + task);
  fetch<true>(result->end_s.data() + task);
}

[[gnu::always_inline]] inline void Simulator::State::foresee_transfer(std::uint32_t transfer) const {
  const auto* record = reinterpret_cast<const char*>(result->transfers.data() + transfer);
  fetch<true>(record);
  fetch<true>(record + sizeof(SimulatedTransfer) - 1);
  fetch<true>(buffers.data() + task_count + transfer);
}

/// What was fetched as far is read as middle and near. As much of each list as most of them have, without a loop over
/// a length that nobody can predict.
[[gnu::always_inline]] inline void Simulator::State::foresee_neighbours(TaskIndex task) const {
  if (task_count <= kFar || task >= task_count - kFar) return;
  fetch(&tasks[task + kFar]);
  fetch<true>(&waiting[task + kFar]);
  fetch<true>(&buffers[task + kFar]);
  foresee_rows(task + kMiddle, tasks[task + kMiddle]);
  const HotTask& hot = tasks[task + kNear];
  const auto transfer = [&](std::uint32_t ahead) {
    fetch<true>(result->transfers.data() + std::min<std::size_t>(hot.transfer_begin + ahead, last_transfer));
  };
  transfer(0), transfer(1), transfer(3);
  fetch<true>(buffers.data() + task_count + hot.transfer_begin);
  static_assert(kInputsAhead == 3);
  const std::uint32_t* const inputs = input_buffer.data() + hot.in_begin;
  fetch<true>(&buffers[inputs[0]]), fetch<true>(&buffers[inputs[1]]), fetch<true>(&buffers[inputs[2]]);
}

/// Consumers [begin, end) have one input more; those that miss none enter their device's queue, by index.
void Simulator::State::arrive(std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t at = begin; at < end; ++at) {
    const TaskIndex t = consumer[at];
    if (--waiting[t] != 0) continue;
    const HotTask& hot = tasks[t];
    const std::uint32_t d = hot.device;
    if (!fixed_order) result->run[devices[d].compute.tail++] = t;
    foresee_rows(t, hot);
    mark_start(d);
  }
}

void Simulator::State::release(std::uint32_t buffer, std::uint32_t device) {
  Buffer& b = buffers[buffer];
  std::int64_t& held = buffer < task_count ? devices[device].level.activation_bytes : devices[device].level.copy_bytes;
  held -= --b.releases == 0 ? b.bytes : 0;
}

void Simulator::State::finish_task(TaskIndex task, double now) {
  const HotTask& hot = tasks[task];
  ++finished;
  devices[hot.device].compute.busy = false;
  mark_start(hot.device);
  mark_change(hot.device);
  devices[hot.device].level.workspace_bytes -= hot.workspace_bytes;
  for (std::uint32_t place = hot.in_begin; place < hot.in_end; ++place) release(input_buffer[place], hot.device);
  for (std::uint32_t k = hot.transfer_begin; k < hot.transfer_end; ++k) {
    result->sent[devices[hot.device].send.tail++] = k;
    if (contention) continue;
    flights.push_back({start_transfer(k, now), k});
    std::push_heap(flights.begin(), flights.end(), LaterFlight());
  }
  arrive(hot.out_begin, hot.local_end);
  foresee_neighbours(task);
}

void Simulator::State::finish_transfer(std::uint32_t transfer) {
  const SimulatedTransfer& done = result->transfers[transfer];
  mark_change(done.from);
  release(done.source, done.from);
  if (contention) {
    devices[done.from].send.busy = false;
    mark_start(done.from);
  }
  const Buffer& copy = buffers[task_count + transfer];
  arrive(copy.consumer_begin, copy.consumer_begin + copy.releases);
}

/// Returns when it will end.
double Simulator::State::start_transfer(std::uint32_t transfer, double now) {
  SimulatedTransfer& started = result->transfers[transfer];
  const double duration = started.end_s;
  started.start_s = now;
  started.end_s = now + duration;
  devices[started.to].level.copy_bytes += started.bytes;
  mark_change(started.to);
  result->devices[started.from].send_s += duration;
  result->devices[started.from].sent_bytes += started.bytes;
  fetch<true>(&buffers[started.source]);
  return started.end_s;
}

/// Likewise.
double Simulator::State::start_task(TaskIndex task, double now) {
  const HotTask& hot = tasks[task];
  const double end = now + hot.duration;
  result->start_s[task] = now;
  result->end_s[task] = end;
  result->devices[hot.device].busy_s += hot.duration;
  devices[hot.device].level.activation_bytes += hot.output_bytes;
  devices[hot.device].level.workspace_bytes += hot.workspace_bytes;
  mark_change(hot.device);
  return end;
}

/// After a round: every marked device starts what it can.
void Simulator::State::start_idle(double now) {
  for (std::uint32_t i = 0; i < to_start_count; ++i) {
    const std::uint32_t d = to_start[i];
    devices[d].start_marked = false;
    Queue& work = devices[d].compute;
    if (!work.busy) {
      double end = Completions::kNever;
      work.busy = work.head < work.tail && (!fixed_order || waiting[result->run[work.head]] == 0);
      if (work.busy) {
        end = start_task(result->run[work.head++], now);
        if (work.head < work.tail) fetch(&tasks[result->run[work.head]]);
      }
      if (end != completions.of(2 * d)) completions.set(2 * d, end);
    }
    Queue& tensors = devices[d].send;
    if (contention && !tensors.busy) {
      double end = Completions::kNever;
      tensors.busy = tensors.head < tensors.tail;
      if (tensors.busy) {
        end = start_transfer(result->sent[tensors.head++], now);
        if (tensors.head < tensors.tail) foresee_transfer(result->sent[tensors.head]);
      }
      if (end != completions.of(2 * d + 1)) completions.set(2 * d + 1, end);
    }
  }
  to_start_count = 0;
}

/// All completions of the instant and everything that began in it are counted: what began and ended in it is gone.
template <bool Record>
void Simulator::State::close_instant(double now) {
  for (std::uint32_t i = 0; i < changed_count; ++i) {
    const std::uint32_t d = changed[i];
    MemorySample& level = devices[d].level;
    devices[d].change_marked = false;
    SimulatedDevice& device = result->devices[d];
    const std::int64_t bytes =
        device.persistent_bytes + level.activation_bytes + level.copy_bytes + level.workspace_bytes;
    if (bytes > device.peak_bytes) {
      device.peak_bytes = bytes;
      device.peak_at_s = now;
    }
    if constexpr (Record) {
      level.time_s = now;
      result->memory[d].push_back(level);
    }
  }
  changed_count = 0;
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
        round.push_back(result->run[devices[d].compute.head - 1]);
      else
        round.push_back(kTransferKey | result->sent[devices[d].send.head - 1]);
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
    if (waiting[t] != 0) continue;
    const std::uint32_t d = tasks[t].device;
    if (!fixed_order) result->run[devices[d].compute.tail++] = t;
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
  for (std::uint32_t d = 0; d < placement.devices; ++d) next[d] = s.devices[d].compute.head - result.run_begin[d];
  return bad_input(describe_deadlock(graph, placement, next), where);
}

std::int64_t peak_communication(const Simulation& simulation) {
  const std::size_t devices = simulation.devices.size();
  std::vector<std::int64_t> sent(devices * devices);
  for (const SimulatedTransfer& transfer : simulation.transfers)
    sent[std::size_t(transfer.from) * devices + transfer.to] += transfer.bytes;
  return sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
}

Expected<Simulation> simulate(const TaskGraph& graph, const Placement& placement, bool memory_over_time,
                              const std::string& where) {
  Simulation result;
  if (auto done = Simulator().run(graph, placement, result, memory_over_time, where); !done) return done.error();
  return result;
}

}  // namespace turnpoint
