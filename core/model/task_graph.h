// SPDX-License-Identifier: Apache-2.0
// The fine-grained training DAG (forward, backward, update tasks with times and bytes): what placement methods and the
// simulator read (resources/manual/formats.md and simulator.md).
//
// A structure of arrays: one entry per task, edges in compressed rows in both directions. Built once by
// TaskGraphBuilder, which checks everything, and immutable afterwards: whoever holds a TaskGraph may rely on ids in
// range, no cycle, finite non-negative numbers and sums that do not overflow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint {

using TaskIndex = std::uint32_t;
using EdgeIndex = std::uint32_t;

/// "No group", "no task": the index that nothing has.
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
/// A device without a memory limit.
inline constexpr std::int64_t kUnlimitedBytes = std::numeric_limits<std::int64_t>::max();

enum class TaskKind : std::uint8_t { forward, backward, update, other };
const char* to_string(TaskKind kind);

/// Texts in one block, by index. Two allocations for a million names.
class NamePool {
 public:
  std::size_t size() const { return begins_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    return std::string_view(characters_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }
  std::uint32_t add(std::string_view text);
  void reserve(std::size_t names, std::size_t characters);

 private:
  std::string characters_;
  std::vector<std::uint64_t> begins_{0};
};

/// How the devices are joined. Numbers may be one for all pairs or matrices [source][destination].
struct TaskLinks {
  enum class Contention : std::uint8_t {
    sender,  ///< a device sends one transfer at a time
    none,    ///< every transfer starts at once
  };
  double bandwidth = 1e9;          ///< bytes per second, where there is no matrix
  double latency = 0;              ///< seconds, where there is no matrix
  std::uint32_t size = 0;          ///< rows of the matrices; 0: there is none, any number of devices
  std::vector<double> bandwidths;  ///< empty, or size x size, row by row; the diagonal is not read
  std::vector<double> latencies;   ///< likewise
  Contention contention = Contention::sender;

  double bandwidth_of(std::uint32_t from, std::uint32_t to) const {
    return bandwidths.empty() ? bandwidth : bandwidths[std::size_t(from) * size + to];
  }
  double latency_of(std::uint32_t from, std::uint32_t to) const {
    return latencies.empty() ? latency : latencies[std::size_t(from) * size + to];
  }
  /// Seconds of one transfer by itself: latency + (bytes / bandwidth), in this order of rounding
  /// (resources/manual/simulator.md, rule 3).
  double seconds(std::uint32_t from, std::uint32_t to, std::int64_t bytes) const {
    return latency_of(from, to) + double(bytes) / bandwidth_of(from, to);
  }
};

struct TaskDevice {
  std::int64_t memory_bytes = kUnlimitedBytes;
  double speed = 1;  ///< a task takes time_s / speed
};

/// See the head of this file. Every array over tasks has task_count() entries, over edges edge_count().
struct TaskGraph {
  std::string name;  ///< file or model it was made of

  // Tasks.
  std::vector<TaskKind> kind;
  std::vector<double> time_s;                  ///< on a device of speed 1
  std::vector<std::int64_t> output_bytes;      ///< the tensor that it makes (resources/manual/simulator.md, rule 4)
  std::vector<std::int64_t> persistent_bytes;  ///< on the task's device from 0 to the end (parameters, states)
  std::vector<std::int64_t> workspace_bytes;   ///< while the task runs
  std::vector<std::uint32_t> colocate;         ///< group of tasks that must share a device, or kNone
  std::vector<std::uint32_t> scope;            ///< index into scopes; 0 is the empty scope
  NamePool names;                              ///< one per task; not necessarily distinct
  NamePool groups;                             ///< names of the co-location groups
  NamePool scopes;                             ///< '/'-separated paths of layers

  // Edges, deduplicated with the larger bytes. An edge has one number: its place among the outgoing edges, which are
  // sorted by source, then destination. Incoming rows are sorted by source and say the number.
  //
  // What a task makes lives as one. Where it is several tensors that not every consumer reads (gradients of the parts
  // of a concatenation), `out_tensor` tells them apart, and a device is sent those that it has consumers of.
  std::vector<EdgeIndex> out_begin;     ///< task_count() + 1 entries: row of task t is [out_begin[t], out_begin[t + 1])
  std::vector<TaskIndex> out_to;        ///< by edge
  std::vector<std::int64_t> out_bytes;  ///< by edge: size of the tensor as this consumer wants it
  /// By edge: seconds of its transfer whatever the link, where the source of the graph states times instead of bytes
  /// (the device-placement workloads); else empty.
  std::vector<double> out_seconds;
  std::vector<std::uint32_t> out_tensor;  ///< by edge: which of its source's tensors; empty: every task makes one
  std::vector<EdgeIndex> in_begin;        ///< task_count() + 1 entries
  std::vector<TaskIndex> in_from;         ///< producer
  std::vector<EdgeIndex> in_edge;         ///< number of the edge

  std::vector<TaskIndex> topological;  ///< all tasks, producers first; of those possible, lowest index first
  TaskLinks links;
  std::vector<TaskDevice> devices;     ///< where they are described one by one; else empty
  TaskDevice alike;                    ///< every device, where `devices` is empty
  std::uint32_t intended_devices = 0;  ///< how many the source of the graph speaks of; 0: it does not

  std::size_t task_count() const { return time_s.size(); }
  std::size_t edge_count() const { return out_to.size(); }
  std::span<const TaskIndex> successors(TaskIndex task) const {
    return {out_to.data() + out_begin[task], out_to.data() + out_begin[task + 1]};
  }
  std::span<const TaskIndex> predecessors(TaskIndex task) const {
    return {in_from.data() + in_begin[task], in_from.data() + in_begin[task + 1]};
  }
  /// Seconds to bring the tensor of `edge` from one device to another, without waiting.
  double transfer_s(EdgeIndex edge, std::uint32_t from, std::uint32_t to) const {
    return out_seconds.empty() ? links.seconds(from, to, out_bytes[edge]) : out_seconds[edge];
  }
  double speed_of(std::uint32_t device) const { return devices.empty() ? alike.speed : devices[device].speed; }
  std::int64_t memory_of(std::uint32_t device) const {
    return devices.empty() ? alike.memory_bytes : devices[device].memory_bytes;
  }
  /// Most devices that a placement may use: rows of the link matrices or entries of `devices`; kNone: no limit.
  std::uint32_t device_limit() const;
  /// "task 7 'layer3/matmul'", for messages; long names are cut.
  std::string describe(TaskIndex task) const;
};
using TaskGraphPtr = std::shared_ptr<const TaskGraph>;

/// Bytes that a device is sent of one task: each tensor once, with the largest bytes among its consumers there
/// (resources/manual/simulator.md, rule 2). Take one edge to that device after the other.
class SentBytes {
 public:
  explicit SentBytes(const TaskGraph& graph) : graph_(graph) {}
  void add(EdgeIndex edge) {
    const std::uint32_t tensor = graph_.out_tensor.empty() ? 0 : graph_.out_tensor[edge];
    if (first_ == kNone) first_ = tensor;
    if (tensor == first_)
      first_bytes_ = std::max(first_bytes_, graph_.out_bytes[edge]);
    else
      add_other(tensor, graph_.out_bytes[edge]);
  }
  std::int64_t total() const { return first_bytes_ + other_bytes_; }

 private:
  void add_other(std::uint32_t tensor, std::int64_t bytes);

  const TaskGraph& graph_;
  std::uint32_t first_ = kNone;
  std::int64_t first_bytes_ = 0, other_bytes_ = 0;
  std::vector<std::pair<std::uint32_t, std::int64_t>> others_;
};

/// Collects tasks and edges in any order, then checks and sorts them.
class TaskGraphBuilder {
 public:
  // Bounds on single numbers, so that no sum of them can overflow or lose its meaning.
  static constexpr double kMaxSeconds = 1e15;
  static constexpr std::int64_t kMaxBytes = std::int64_t(1) << 53;
  static constexpr std::int64_t kMaxTotalBytes = std::int64_t(1) << 62;
  static constexpr std::size_t kMaxTasks = std::size_t(1) << 28;
  static constexpr std::size_t kMaxEdges = std::size_t(1) << 30;
  static constexpr std::uint32_t kMaxDevices = 1 << 16;

  struct Task {
    std::string_view name;
    TaskKind kind = TaskKind::other;
    double time_s = 0;
    std::int64_t output_bytes = 0, persistent_bytes = 0, workspace_bytes = 0;
    std::uint32_t colocate = kNone;  ///< from group()
    std::uint32_t scope = 0;         ///< from scope()
  };
  static constexpr std::int64_t kProducerBytes = -1;  ///< the edge carries the producer's output_bytes
  static constexpr double kNoSeconds = -1;            ///< the link decides how long the edge's transfer takes

  TaskGraphBuilder();
  void reserve(std::size_t tasks, std::size_t edges);
  std::uint32_t group(std::string_view name);  ///< the same name gives the same group
  std::uint32_t scope(std::string_view path);
  TaskIndex add_task(const Task& task);
  /// Tasks may be added later than the edges that name them. `from` and `to` are wide so that what a file says can be
  /// passed on unchecked.
  void add_edge(std::int64_t from, std::int64_t to, std::int64_t bytes = kProducerBytes, double seconds = kNoSeconds) {
    add_tensor(from, to, 0, bytes, seconds);
  }
  /// An edge of one of several tensors that `from` makes. Repeated, the edge is of the one it was of first.
  void add_tensor(std::int64_t from, std::int64_t to, std::uint32_t tensor, std::int64_t bytes = kProducerBytes,
                  double seconds = kNoSeconds) {
    edges_.push_back({from, to, bytes, seconds, tensor});
    several_ |= tensor != 0;
  }
  std::size_t task_count() const { return graph_->time_s.size(); }

  TaskLinks links;
  std::vector<TaskDevice> devices;
  TaskDevice alike;
  std::uint32_t intended_devices = 0;
  std::string name;

  /// The graph, or what is wrong with it; `where` names the source in messages. The builder is empty afterwards.
  Expected<TaskGraphPtr> finish(const std::string& where);

 private:
  struct Edge {
    std::int64_t from, to, bytes;
    double seconds;
    std::uint32_t tensor;
  };
  using Index = std::unordered_map<std::string, std::uint32_t>;

  Expected<void> check_tasks(const std::string& where) const;
  Expected<void> check_links(const std::string& where) const;
  Expected<void> check_edges(const std::string& where) const;
  void build_rows();
  Expected<void> check_totals(const std::string& where) const;
  Expected<void> sort_topologically(const std::string& where);

  std::shared_ptr<TaskGraph> graph_;
  std::vector<Edge> edges_;
  bool several_ = false;  ///< some task makes several tensors
  Index group_index_, scope_index_;
};

}  // namespace turnpoint
