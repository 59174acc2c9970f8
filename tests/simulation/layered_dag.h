// SPDX-License-Identifier: Apache-2.0
// Seeded layered training graphs, the same bit for bit wherever they are made: 64-bit unsigned integers and SplitMix64
// only. 32 lanes of forward tasks in layers, a mirrored backward task for each, some updates; ids are a topological
// order. The checksum covers sizes, work, tensor sizes and edges, so that two programs can tell they mean the same
// graph.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/model/task_graph.h"

namespace turnpoint::test {

struct LayeredDag {
  static constexpr std::uint64_t kLanes = 32;
  std::uint64_t forward = 0;  ///< tasks 0 ... forward - 1; their mirrors up to 2 forward - 1; then updates
  std::vector<std::uint64_t> work_ns, out_bytes;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;

  std::uint64_t mirror(std::uint64_t i) const { return 2 * forward - 1 - i; }
  /// 10 us and 10 GB/s, in whole nanoseconds.
  std::uint64_t cost_ns(std::uint32_t source) const { return 10000 + out_bytes[source] / 10; }
};

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return ((next() >> 32) * n) >> 32; }

 private:
  std::uint64_t state_;
};

inline std::uint64_t random_work(SplitMix64& random) {
  const std::uint64_t kind = random.below(100);
  if (kind < 5) return 100000 + random.below(1900000);
  if (kind < 30) return 10000 + random.below(90000);
  return 1000 + random.below(9000);
}

/// Producers of forward task i, in the recipe's order; the draws are part of the recipe.
inline std::vector<std::uint32_t> random_parents(SplitMix64& random, std::uint64_t i) {
  constexpr std::uint64_t W = LayeredDag::kLanes;
  const std::uint64_t layer = i / W, lane = i % W;
  std::vector<std::uint32_t> parents;
  if (layer == 0) return parents;
  const auto add = [&](std::uint64_t p) { parents.push_back(std::uint32_t(p)); };
  add(i - W);
  if (random.below(4) == 0) {
    const std::uint64_t step = random.below(2) == 0 ? 1 : W - 1;
    add((layer - 1) * W + (lane + step) % W);
  }
  if (layer % 4 == 0) add(i - 4 * W);
  if (layer >= 9 && random.below(64) == 0) {
    const std::uint64_t back = 8 + random.below(std::min<std::uint64_t>(layer - 8, 24));
    add((layer - back) * W + random.below(W));
  }
  return parents;
}

inline LayeredDag layered_dag(std::uint64_t tasks, std::uint64_t seed) {
  constexpr std::uint64_t W = LayeredDag::kLanes;
  SplitMix64 random(seed);
  LayeredDag dag;
  const std::uint64_t F = dag.forward = tasks * W / (2 * W + 1);
  const std::uint64_t layers = (F + W - 1) / W, updates = tasks - 2 * F;
  dag.work_ns.resize(tasks);
  dag.out_bytes.resize(tasks);
  std::vector<std::vector<std::uint32_t>> parents(F);
  for (std::uint64_t i = 0; i < F; ++i) {
    dag.work_ns[i] = random_work(random);
    dag.out_bytes[i] = std::uint64_t(1) << (12 + random.below(11));
    dag.work_ns[dag.mirror(i)] = 2 * dag.work_ns[i];
    dag.out_bytes[dag.mirror(i)] = dag.out_bytes[i];
    parents[i] = random_parents(random, i);
  }
  for (std::uint64_t k = 0; k < updates; ++k) {
    dag.work_ns[2 * F + k] = 5000 + random.below(15000);
    dag.out_bytes[2 * F + k] = 4096;
  }
  const auto edge = [&](std::uint64_t from, std::uint64_t to) {
    dag.edges.emplace_back(std::uint32_t(from), std::uint32_t(to));
  };
  for (std::uint64_t i = 0; i < F; ++i)
    for (const auto p : parents[i]) edge(p, i);
  for (std::uint64_t i = 0; i < F; ++i)
    for (const auto p : parents[i]) edge(dag.mirror(i), dag.mirror(p));
  for (std::uint64_t i = 0; i < F; ++i) {
    edge(i, dag.mirror(i));
    if (i >= W) edge(i - W, dag.mirror(i));
  }
  for (std::uint64_t k = 0; k < updates; ++k) {
    const std::uint64_t begin = k % layers * W;
    for (std::uint64_t i = begin; i < std::min(begin + W, F); ++i) edge(dag.mirror(i), 2 * F + k);
  }
  return dag;
}

/// FNV-1a over the little-endian 64-bit numbers: tasks, edges, work, tensor sizes, then (source, destination, cost).
inline std::uint64_t checksum(const LayeredDag& dag) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  const auto feed = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte, value >>= 8) hash = (hash ^ (value & 0xff)) * 0x100000001B3ull;
  };
  feed(dag.work_ns.size());
  feed(dag.edges.size());
  for (const auto work : dag.work_ns) feed(work);
  for (const auto bytes : dag.out_bytes) feed(bytes);
  for (const auto& [from, to] : dag.edges) {
    feed(from);
    feed(to);
    feed(dag.cost_ns(from));
  }
  return hash;
}

/// As a task graph: seconds and bytes; `cost_factor` multiplies latency and the time per byte of every transfer.
inline TaskGraphPtr layered_graph(const LayeredDag& dag, double cost_factor = 1,
                                  TaskLinks::Contention contention = TaskLinks::Contention::sender) {
  TaskGraphBuilder builder;
  builder.reserve(dag.work_ns.size(), dag.edges.size());
  builder.name = "layered";
  for (std::uint64_t i = 0; i < dag.work_ns.size(); ++i) {
    TaskGraphBuilder::Task task;
    const std::string name = fmt::format("t{}", i);
    task.name = name;
    task.kind = i < dag.forward ? TaskKind::forward : i < 2 * dag.forward ? TaskKind::backward : TaskKind::update;
    task.time_s = double(dag.work_ns[i]) * 1e-9;
    task.output_bytes = std::int64_t(dag.out_bytes[i]);
    builder.add_task(task);
  }
  for (const auto& [from, to] : dag.edges) builder.add_edge(from, to);
  builder.links.latency = 10e-6 * cost_factor;
  builder.links.bandwidth = 10e9 / cost_factor;
  builder.links.contention = contention;
  auto graph = builder.finish("layered");
  return graph ? *graph : nullptr;
}

}  // namespace turnpoint::test
