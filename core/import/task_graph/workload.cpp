// SPDX-License-Identifier: Apache-2.0
// Workloads of the device-placement study (NeurIPS 2020, msr-fiddle/dnn-partitioning), and Piper's inputs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/json_fields.h"
#include "core/import/task_graph/readers.h"

namespace turnpoint::task_graph_import {
namespace {

constexpr double kMaxSeconds = TaskGraphBuilder::kMaxSeconds;
constexpr double kMaxBytes = double(TaskGraphBuilder::kMaxBytes);
constexpr std::int64_t kMaxId = std::int64_t(1) << 53;

/// true, false, 0 or 1.
bool flag(JsonFields& fields, const char* key, bool otherwise) {
  if (!fields.has(key)) return otherwise;
  const auto& value = fields.json().at(key);
  if (value.is_boolean()) return value.get<bool>();
  return fields.integer(key, 0, 1) == 1;
}

std::int64_t bytes(JsonFields& fields, const char* key, double otherwise) {
  std::int64_t whole = 0;
  to_bytes(fields.number(key, 0, kMaxBytes, otherwise), whole);
  return whole;
}

/// Node ids have gaps and come in any order; tasks are numbered as they are listed.
class Ids {
 public:
  void add(JsonFields& node, std::size_t index) {
    const std::int64_t id = node.integer("id", -kMaxId, kMaxId);
    if (!index_.try_emplace(id, std::int64_t(index)).second)
      node.fail("id", fmt::format("{} is the id of an earlier node, too", id));
  }
  std::int64_t find(JsonFields& edge, const char* key) const {
    const std::int64_t id = edge.integer(key, -kMaxId, kMaxId);
    const auto found = index_.find(id);
    if (found != index_.end()) return found->second;
    edge.fail(key, fmt::format("names node {}, which does not exist", id));
    return 0;
  }

 private:
  std::unordered_map<std::int64_t, std::int64_t> index_;
};

/// The study's latency inputs state transfer costs in other units than their latencies. Nothing in the file says so
/// but that they, alone, offer several processors; the folder's name says it, too.
bool is_latency_input(const std::string& where, std::int64_t processors) {
  return where.find("latency-inputs") != std::string::npos || processors > 1;
}

}  // namespace

Expected<TaskGraphPtr> read_workload(const nlohmann::json& document, const std::string& where) {
  JsonFields root(document, where);
  TaskGraphBuilder builder;
  Ids ids;
  builder.intended_devices = std::uint32_t(root.integer("maxFPGAs", 0, TaskGraphBuilder::kMaxDevices));
  if (root.has("maxSizePerFPGA")) builder.alike.memory_bytes = bytes(root, "maxSizePerFPGA", 0);
  const std::int64_t processors = root.integer("maxCPUs", 0, kMaxId, 1);
  const double cost_factor = is_latency_input(where, processors) ? 1000 : 1;
  root.each("nodes", [&](JsonFields& node, std::size_t i) {
    ids.add(node, i);
    TaskGraphBuilder::Task task;
    const std::string name = node.text("name", fmt::format("node {}", node.integer("id", -kMaxId, kMaxId)));
    task.name = name;
    task.kind = flag(node, "isBackwardNode", false) ? TaskKind::backward : TaskKind::forward;
    task.time_s = node.number("fpgaLatency", 0, kMaxSeconds, 0);
    task.persistent_bytes = bytes(node, "size", 0);
    if (!flag(node, "supportedOnFpga", true))
      node.fail("supportedOnFpga", "says that no accelerator can run the node; only accelerators are placed here");
    if (node.has("colorClass"))
      task.colocate = builder.group(std::to_string(node.integer("colorClass", -kMaxId, kMaxId)));
    builder.add_task(task);
  });
  root.each("edges", [&](JsonFields& edge, std::size_t) {
    const std::int64_t from = ids.find(edge, "sourceId"), to = ids.find(edge, "destId");
    // Node sizes are all the memory that the study counts; a transfer is a time, not a size.
    builder.add_edge(from, to, 0, edge.number("cost", 0, kMaxSeconds, 0) / cost_factor);
  });
  if (root.error()) return *root.error();
  return builder.finish(where);
}

Expected<TaskGraphPtr> read_piper(const nlohmann::json& document, const std::string& where) {
  JsonFields root(document, where);
  TaskGraphBuilder builder;
  Ids ids;
  builder.intended_devices = std::uint32_t(root.integer("maxDevices", 0, TaskGraphBuilder::kMaxDevices));
  if (root.has("maxMemoryPerDevice")) builder.alike.memory_bytes = bytes(root, "maxMemoryPerDevice", 0);
  builder.links.bandwidth = root.number("bandwidth", 1e-6, 1e24, 1e9);
  root.each("nodes", [&](JsonFields& node, std::size_t i) {
    ids.add(node, i);
    TaskGraphBuilder::Task task;
    const std::string name = node.text("name", fmt::format("node {}", i));
    task.name = name;
    // Degree 1 of tensor parallelism, first variant: the plain one, without recomputation.
    JsonFields degrees = node.object("TMPCs");
    bool first = true;
    degrees.each("1", [&](JsonFields& variant, std::size_t) {
      if (!first) return;
      first = false;
      task.time_s = variant.number("timePerSample", 0, kMaxSeconds, 0);
      task.workspace_bytes = bytes(variant, "memoryUsageA", 0);
      task.persistent_bytes = bytes(variant, "memoryUsageB", 0);
    });
    if (first) node.fail("TMPCs", "has no variant of degree 1");
    builder.add_task(task);
  });
  root.each("edges", [&](JsonFields& edge, std::size_t) {
    const std::int64_t from = ids.find(edge, "sourceId"), to = ids.find(edge, "destId");
    builder.add_edge(from, to, bytes(edge, "communicationCost", 0));
  });
  if (root.error()) return *root.error();
  return builder.finish(where);
}

}  // namespace turnpoint::task_graph_import
