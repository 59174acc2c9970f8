// SPDX-License-Identifier: Apache-2.0
// Seeded small task graphs: random ones with co-location groups, zero times and several sizes per tensor; chains.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/model/task_graph.h"

namespace turnpoint::test {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 2654435761u + 1) {}
  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return std::uint32_t((state_ >> 33) % n);
  }

 private:
  std::uint64_t state_;
};

using Adjust = std::function<void(TaskGraphBuilder&)>;

inline TaskGraphPtr random_task_graph(std::uint64_t seed, std::size_t tasks, const Adjust& adjust = nullptr) {
  Draw draw(seed);
  TaskGraphBuilder builder;
  const bool sizes_differ = draw.below(2) == 0, groups = draw.below(3) == 0;
  for (std::size_t i = 0; i < tasks; ++i) {
    TaskGraphBuilder::Task task;
    const std::string name = fmt::format("t{}", i);
    task.name = name;
    task.kind = TaskKind(draw.below(4));
    task.time_s = draw.below(8) == 0 ? 0 : 0.25 * draw.below(16);
    task.output_bytes = draw.below(100);
    task.persistent_bytes = draw.below(4) == 0 ? draw.below(100) : 0;
    task.workspace_bytes = draw.below(4) == 0 ? draw.below(50) : 0;
    if (groups && draw.below(3) == 0) task.colocate = builder.group(fmt::format("g{}", draw.below(4)));
    builder.add_task(task);
  }
  for (std::uint32_t to = 1; to < tasks; ++to)
    for (std::uint32_t k = draw.below(4); k > 0; --k)
      builder.add_edge(draw.below(to), to, sizes_differ ? draw.below(100) : TaskGraphBuilder::kProducerBytes);
  builder.links.bandwidth = 100;
  builder.links.latency = 0.125;
  builder.links.contention = draw.below(2) ? TaskLinks::Contention::none : TaskLinks::Contention::sender;
  if (adjust) adjust(builder);
  return *builder.finish("random");
}

inline TaskGraphPtr chain(std::uint64_t seed, std::uint32_t tasks) {
  Draw draw(seed);
  TaskGraphBuilder builder;
  for (std::uint32_t i = 0; i < tasks; ++i) {
    TaskGraphBuilder::Task task;
    const std::string name = fmt::format("t{}", i);
    task.name = name;
    task.time_s = 1 + draw.below(20);
    task.output_bytes = draw.below(400);
    builder.add_task(task);
    if (i > 0) builder.add_edge(i - 1, i);
  }
  builder.links.bandwidth = 100;
  return *builder.finish("chain");
}

/// Methods whose shortest useful run takes seconds.
inline bool learns(std::string_view method) { return method == "trinity" || method == "hierarchical"; }

inline bool one_size_per_tensor(const TaskGraph& graph) {
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    for (EdgeIndex e = graph.out_begin[t]; e < graph.out_begin[t + 1]; ++e)
      if (graph.out_bytes[e] != graph.output_bytes[t]) return false;
  return true;
}

}  // namespace turnpoint::test
