// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/memory_ledger.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::pardnn {

MemoryLedger::MemoryLedger(const TaskGraph& graph, const Placement& placement, const Simulation& simulation)
    : graph_(graph), simulation_(simulation), device_(placement.device) {
  const std::uint32_t devices = placement.devices;
  buckets_ = std::uint32_t(std::clamp<std::size_t>((std::size_t(1) << 24) / devices, 1, 1024));
  buckets_ = std::uint32_t(std::min<std::size_t>(buckets_, 4 * graph.task_count() + 1));
  width_ = simulation.makespan_s > 0 ? simulation.makespan_s / buckets_ : 1;
  level_.assign(std::size_t(devices) * buckets_, 0);
  for (std::uint32_t d = 0; d < devices; ++d) {
    // A sample holds from its instant on, so each bucket begins with what the last one ended with.
    std::int64_t now = simulation.devices[d].persistent_bytes;
    std::uint32_t at = 0;
    std::int64_t* level = level_.data() + row(d);
    level[0] = now;
    for (const MemorySample& sample : simulation.memory[d]) {
      const std::uint32_t bucket = bucket_of(sample.time_s);
      while (at < bucket) level[++at] = now;
      now =
          simulation.devices[d].persistent_bytes + sample.activation_bytes + sample.copy_bytes + sample.workspace_bytes;
      level[at] = std::max(level[at], now);
    }
    while (at + 1 < buckets_) level[++at] = now;
  }
}

double MemoryLedger::least_total() const {
  double parameters = 0;
  std::vector<double> begins(std::size_t(buckets_) + 1, 0);  // what is held more from this bucket's beginning on
  const auto held = [&](double from, double to, std::int64_t bytes) {
    // Strictly between: what ends or begins at the very instant is not counted.
    const auto first = std::size_t(std::clamp(std::floor(from / width_) + 1, 0.0, double(buckets_)));
    const auto last = std::size_t(std::clamp(std::ceil(to / width_), 0.0, double(buckets_)));
    if (first >= last) return;
    begins[first] += double(bytes);
    begins[last] -= double(bytes);
  };
  for (TaskIndex t = 0; t < graph_.task_count(); ++t) {
    parameters += double(graph_.persistent_bytes[t]);
    const double start = simulation_.start_s[t], end = simulation_.end_s[t];
    held(start, end, graph_.output_bytes[t] + graph_.workspace_bytes[t]);
    // Afterwards it is where its last reader is, if not whole then as much of it as that reads.
    double last = graph_.successors(t).empty() ? simulation_.makespan_s : end;
    std::int64_t left = graph_.output_bytes[t];
    for (EdgeIndex e = graph_.out_begin[t]; e < graph_.out_begin[t + 1]; ++e) {
      const double read = simulation_.end_s[graph_.out_to[e]];
      if (read <= last) continue;
      last = read;
      left = std::min(graph_.out_bytes[e], graph_.output_bytes[t]);
    }
    held(end, last, left);
  }
  double now = parameters, most = parameters;
  for (std::uint32_t b = 0; b < buckets_; ++b) {
    now += begins[b];
    most = std::max(most, now);
  }
  return most;
}

std::uint32_t MemoryLedger::bucket_of(double time) const {
  return std::uint32_t(std::min(std::max(time / width_, 0.0), double(buckets_ - 1)));
}

std::int64_t MemoryLedger::size_on(TaskIndex tensor, std::uint32_t device) const {
  if (device_[tensor] == device) return graph_.output_bytes[tensor];
  SentBytes sent(graph_);
  for (EdgeIndex e = graph_.out_begin[tensor]; e < graph_.out_begin[tensor + 1]; ++e)
    if (device_[graph_.out_to[e]] == device) sent.add(e);
  return sent.total();
}

MemoryLedger::Interval MemoryLedger::life(TaskIndex tensor, std::uint32_t device) const {
  const std::uint32_t own = device_[tensor];
  const double made = simulation_.end_s[tensor];
  double last = -1, sent = -1;
  for (EdgeIndex e = graph_.out_begin[tensor]; e < graph_.out_begin[tensor + 1]; ++e) {
    const TaskIndex to = graph_.out_to[e];
    const std::uint32_t there = device_[to];
    if (there == device) last = std::max(last, simulation_.end_s[to]);
    if (there != own && own == device) sent = std::max(sent, made + graph_.transfer_s(e, own, there));
  }
  if (own != device) return last < 0 ? Interval{} : Interval{made, std::max(last, made)};
  const double begin = simulation_.start_s[tensor];
  if (last < 0 && sent < 0) return {begin, simulation_.makespan_s};
  return {begin, std::max({last, sent, made})};
}

void MemoryLedger::add_change(std::uint32_t device, Interval life, std::int64_t bytes) {
  if (life.empty() || bytes == 0) return;
  // What comes fills every bucket it touches; what goes only empties those it filled wholly.
  const bool comes = bytes > 0;
  std::uint32_t begin = bucket_of(life.begin), end = bucket_of(life.end) + 1;
  if (!comes) {
    if (life.begin > time_of(begin)) ++begin;
    if (life.end < simulation_.makespan_s) --end;
  }
  if (begin < end) changes_.push_back({device, begin, end, bytes});
}

void MemoryLedger::add_difference(std::uint32_t device, std::int64_t before_bytes, Interval before,
                                  std::int64_t after_bytes, Interval after) {
  if (before.empty() || after.empty() || before_bytes != after_bytes) {
    add_change(device, before, -before_bytes);
    add_change(device, after, after_bytes);
    return;
  }
  if (after.begin < before.begin) add_change(device, {after.begin, before.begin}, after_bytes);
  if (after.begin > before.begin) add_change(device, {before.begin, after.begin}, -after_bytes);
  if (after.end > before.end) add_change(device, {before.end, after.end}, after_bytes);
  if (after.end < before.end) add_change(device, {after.end, before.end}, -after_bytes);
}

const std::vector<MemoryLedger::Change>& MemoryLedger::changes(const std::vector<TaskIndex>& tasks, std::uint32_t to) {
  changes_.clear();
  tensors_.clear();
  for (const TaskIndex t : tasks) {
    tensors_.push_back(t);
    for (const TaskIndex from : graph_.predecessors(t)) tensors_.push_back(from);
  }
  std::sort(tensors_.begin(), tensors_.end());
  tensors_.erase(std::unique(tensors_.begin(), tensors_.end()), tensors_.end());
  const std::uint32_t from = device_[tasks.front()];
  before_.clear();
  // A tensor's life can change on the two devices of the move and on that of its producer, which may send less.
  const auto note = [&](TaskIndex tensor, std::uint32_t d) {
    before_.push_back({tensor, d, size_on(tensor, d), life(tensor, d)});
  };
  for (const TaskIndex tensor : tensors_) {
    note(tensor, from);
    note(tensor, to);
    if (device_[tensor] != from && device_[tensor] != to) note(tensor, device_[tensor]);
  }
  for (const TaskIndex t : tasks) device_[t] = to;
  for (const Before& b : before_)
    add_difference(b.device, b.bytes, b.life, size_on(b.tensor, b.device), life(b.tensor, b.device));
  for (const TaskIndex t : tasks) {
    device_[t] = from;
    const Interval whole{0, simulation_.makespan_s};
    add_change(from, whole, -graph_.persistent_bytes[t]);
    add_change(to, whole, graph_.persistent_bytes[t]);
    const Interval runs{simulation_.start_s[t], simulation_.end_s[t]};
    add_change(from, runs, -graph_.workspace_bytes[t]);
    add_change(to, runs, graph_.workspace_bytes[t]);
  }
  return changes_;
}

void MemoryLedger::apply(const std::vector<TaskIndex>& tasks, std::uint32_t to, const std::vector<Change>& changes) {
  for (const Change& c : changes)
    for (std::uint32_t b = c.begin; b < c.end; ++b) level_[row(c.device) + b] += c.bytes;
  for (const TaskIndex t : tasks) device_[t] = to;
}

bool MemoryLedger::fits(const std::vector<Change>& changes, const std::vector<std::int64_t>& limit) {
  raised_.resize(buckets_);
  // Few devices are concerned; each is summed up over the range its changes span.
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::uint32_t d = changes[i].device;
    bool first = true;
    for (std::size_t j = 0; j < i; ++j) first &= changes[j].device != d;
    if (!first) continue;
    std::uint32_t begin = buckets_, end = 0;
    for (const Change& c : changes)
      if (c.device == d) {
        begin = std::min(begin, c.begin);
        end = std::max(end, c.end);
      }
    std::fill(raised_.begin() + begin, raised_.begin() + end, 0);
    for (const Change& c : changes)
      if (c.device == d)
        for (std::uint32_t b = c.begin; b < c.end; ++b) raised_[b] += c.bytes;
    for (std::uint32_t b = begin; b < end; ++b)
      if (raised_[b] > 0 && level_[row(d) + b] + raised_[b] > limit[d]) return false;
  }
  return true;
}

}  // namespace turnpoint::pardnn
