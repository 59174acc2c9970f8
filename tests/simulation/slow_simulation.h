// SPDX-License-Identifier: Apache-2.0
// The rules of the simulator written down once more, literally and slowly: lists of things under way, maps of tensors,
// and memory from intervals after the fact. Shares nothing with core/simulation but the input.
#pragma once

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/model/placement.h"

namespace turnpoint::test {

struct SlowResult {
  bool finished = false;
  double makespan = 0;
  std::vector<double> start, end, busy;
  std::map<std::pair<TaskIndex, std::uint32_t>, std::pair<double, double>> transfers;  // (source, device) -> from, to
  std::vector<std::int64_t> peak;
  std::vector<double> peak_at;  ///< the first instant of the peak; 0 where nothing is above what stays
};

class SlowSimulation {
 public:
  SlowSimulation(const TaskGraph& graph, const Placement& placement) : g_(graph), p_(placement) {}

  SlowResult run() {
    const std::size_t tasks = g_.task_count();
    r_.start.assign(tasks, -1);
    r_.end.assign(tasks, -1);
    r_.busy.assign(p_.devices, 0);
    running_.assign(p_.devices, -1);
    sending_.assign(p_.devices, false);
    run_queue_.resize(p_.devices);
    send_queue_.resize(p_.devices);
    if (!p_.order.empty())
      for (std::uint32_t d = 0; d < p_.devices; ++d) run_queue_[d].assign(p_.order[d].begin(), p_.order[d].end());
    for (TaskIndex t = 0; t < tasks; ++t)
      if (all_inputs_there(t)) enter(t);
    start_everything();
    while (!tasks_under_way_.empty() || !transfers_under_way_.empty()) {
      now_ = earliest();
      one_round();
      start_everything();
    }
    r_.makespan = now_;
    r_.finished = done_.size() == tasks;
    if (r_.finished) memory();
    return r_;
  }

 private:
  using Send = std::pair<TaskIndex, std::uint32_t>;  // source, destination device

  std::uint32_t device(TaskIndex t) const { return p_.device[t]; }
  bool all_inputs_there(TaskIndex t) const {
    for (const TaskIndex from : g_.predecessors(t)) {
      const bool here = device(from) == device(t) ? done_.count(from) : arrived_.count({from, device(t)});
      if (!here) return false;
    }
    return true;
  }
  void enter(TaskIndex t) {
    if (!entered_.insert(t).second || !p_.order.empty()) return;
    run_queue_[device(t)].push_back(t);
  }
  std::pair<std::int64_t, double> size_and_duration(const Send& send) const {
    std::map<std::uint32_t, std::int64_t> by_tensor;
    double stated = 0;
    for (EdgeIndex e = g_.out_begin[send.first]; e < g_.out_begin[send.first + 1]; ++e) {
      if (device(g_.out_to[e]) != send.second) continue;
      auto& largest = by_tensor[g_.out_tensor.empty() ? 0 : g_.out_tensor[e]];
      largest = std::max(largest, g_.out_bytes[e]);
      if (!g_.out_seconds.empty()) stated = std::max(stated, g_.out_seconds[e]);
    }
    std::int64_t bytes = 0;
    for (const auto& [tensor, largest] : by_tensor) bytes += largest;
    const auto from = device(send.first);
    if (!g_.out_seconds.empty()) return {bytes, stated};
    return {bytes, g_.links.latency_of(from, send.second) + double(bytes) / g_.links.bandwidth_of(from, send.second)};
  }
  void start_sending(const Send& send) {
    r_.transfers[send] = {now_, now_ + size_and_duration(send).second};
    transfers_under_way_.push_back(send);
  }
  void start_everything() {
    for (std::uint32_t d = 0; d < p_.devices; ++d) {
      auto& queue = run_queue_[d];
      if (running_[d] < 0 && !queue.empty() && all_inputs_there(queue.front())) {
        const TaskIndex t = queue.front();
        queue.pop_front();
        running_[d] = t;
        const double duration = g_.time_s[t] / (g_.devices.empty() ? 1.0 : g_.devices[d].speed);
        r_.start[t] = now_;
        r_.end[t] = now_ + duration;
        r_.busy[d] += duration;
        tasks_under_way_.push_back(t);
      }
      if (!sending_[d] && !send_queue_[d].empty()) {
        sending_[d] = true;
        start_sending(send_queue_[d].front());
        send_queue_[d].pop_front();
      }
    }
  }
  double earliest() const {
    double time = -1;
    for (const TaskIndex t : tasks_under_way_) time = time < 0 ? r_.end[t] : std::min(time, r_.end[t]);
    for (const Send& s : transfers_under_way_)
      time = time < 0 ? r_.transfers.at(s).second : std::min(time, r_.transfers.at(s).second);
    return time;
  }
  void one_round() {
    std::set<TaskIndex> finished;
    std::set<Send> arrived;
    for (const TaskIndex t : tasks_under_way_)
      if (r_.end[t] == now_) finished.insert(t);
    for (const Send& s : transfers_under_way_)
      if (r_.transfers.at(s).second == now_) arrived.insert(s);
    for (const TaskIndex t : finished) tasks_under_way_.remove(t);
    for (const Send& s : arrived) transfers_under_way_.remove(s);
    for (const TaskIndex t : finished) complete(t);
    for (const Send& s : arrived) {
      arrived_.insert(s);
      if (g_.links.contention == TaskLinks::Contention::sender) sending_[device(s.first)] = false;
      wake_consumers(s.first, s.second);
    }
  }
  void complete(TaskIndex t) {
    done_.insert(t);
    running_[device(t)] = -1;
    std::set<std::uint32_t> destinations;
    for (const TaskIndex to : g_.successors(t))
      if (device(to) != device(t)) destinations.insert(device(to));
    for (const std::uint32_t d : destinations)
      if (g_.links.contention == TaskLinks::Contention::sender)
        send_queue_[device(t)].push_back({t, d});
      else
        start_sending({t, d});
    wake_consumers(t, device(t));
  }
  void wake_consumers(TaskIndex t, std::uint32_t where) {
    for (const TaskIndex to : g_.successors(t))
      if (device(to) == where && all_inputs_there(to)) enter(to);
  }

  // Every piece of memory as an interval [from, to); what is empty does not count. Checked at every beginning.
  struct Piece {
    double from, to;
    std::int64_t bytes;
  };
  void memory() {
    std::vector<std::vector<Piece>> pieces(p_.devices);
    std::vector<std::int64_t> persistent(p_.devices, 0);
    for (TaskIndex t = 0; t < g_.task_count(); ++t) {
      persistent[device(t)] += g_.persistent_bytes[t];
      pieces[device(t)].push_back({r_.start[t], r_.end[t], g_.workspace_bytes[t]});
      double until = -1;
      std::map<std::uint32_t, double> copies;
      for (const TaskIndex to : g_.successors(t)) {
        if (device(to) == device(t))
          until = std::max(until, r_.end[to]);
        else
          copies[device(to)] = std::max(copies[device(to)], r_.end[to]);
      }
      for (const auto& [d, end] : copies) {
        until = std::max(until, r_.transfers[{t, d}].second);
        pieces[d].push_back({r_.transfers[{t, d}].first, end, size_and_duration({t, d}).first});
      }
      pieces[device(t)].push_back({r_.start[t], until < 0 ? r_.makespan : until, g_.output_bytes[t]});
    }
    r_.peak = persistent;
    r_.peak_at.assign(p_.devices, 0);
    for (std::uint32_t d = 0; d < p_.devices; ++d)
      for (const Piece& at : pieces[d]) {
        std::int64_t bytes = persistent[d];
        for (const Piece& piece : pieces[d])
          if (piece.from <= at.from && at.from < piece.to) bytes += piece.bytes;
        // Pieces are in no order of time.
        if (bytes > r_.peak[d] || (bytes == r_.peak[d] && bytes > persistent[d] && at.from < r_.peak_at[d]))
          r_.peak[d] = bytes, r_.peak_at[d] = at.from;
      }
  }

  const TaskGraph& g_;
  const Placement& p_;
  SlowResult r_;
  double now_ = 0;
  std::vector<std::int64_t> running_;
  std::vector<bool> sending_;
  std::vector<std::deque<TaskIndex>> run_queue_;
  std::vector<std::deque<Send>> send_queue_;
  std::list<TaskIndex> tasks_under_way_;
  std::list<Send> transfers_under_way_;
  std::set<TaskIndex> entered_, done_;
  std::set<Send> arrived_;
};

}  // namespace turnpoint::test
