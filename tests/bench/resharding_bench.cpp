// SPDX-License-Identifier: Apache-2.0
// Resharding tables of the size that runs under a slider, first with an empty cache of graphs, then with a warm one.
#include <benchmark/benchmark.h>

#include "core/cost/resharding.h"
#include "cost/meshes.h"

namespace turnpoint {
namespace {

using test::mesh_of;

struct Case {
  Mesh mesh;
  Cluster cluster;
  std::vector<std::int64_t> shape;
  std::vector<Layout> from, to;
};

// Every n-th layout of a tensor whose dimensions divide by everything.
std::vector<Layout> layouts(const Mesh& mesh, int dims, bool partial, std::size_t wanted) {
  const int values = dims + (partial ? 2 : 1);
  std::size_t total = 1;
  for (int a = 0; a < mesh.count(); ++a) total *= static_cast<std::size_t>(values);
  std::vector<Layout> result;
  for (std::size_t i = 0; i < wanted; ++i) {
    Layout layout;
    std::size_t rest = i * total / wanted;
    for (int a = 0; a < mesh.count(); ++a, rest /= static_cast<std::size_t>(values))
      layout.axis[a] = static_cast<std::int8_t>(dims - 1 - static_cast<int>(rest % static_cast<std::size_t>(values)));
    result.push_back(layout);
  }
  return result;
}

Case make_case(int nodes, int dims) {
  Case c;
  c.cluster = test::cluster_of(nodes, 8, 12.5e9, 130e9);
  c.mesh = make_mesh(c.cluster);
  c.shape.assign(static_cast<std::size_t>(dims), 4096);
  c.from = layouts(c.mesh, dims, true, 175);
  c.to = layouts(c.mesh, dims, false, 76);
  return c;
}

void times(benchmark::State& state) {
  const Case c = make_case(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  const ReshardingModel model(c.mesh, CollectiveModel(c.cluster, {}), 900e9);
  benchmark::DoNotOptimize(model.times(c.shape, 4, c.from, c.to));
  for (auto _ : state) benchmark::DoNotOptimize(model.times(c.shape, 4, c.from, c.to));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(c.from.size() * c.to.size()));
}

void times_cold(benchmark::State& state) {
  const Case c = make_case(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) {
    const ReshardingModel model(c.mesh, CollectiveModel(c.cluster, {}), 900e9);
    benchmark::DoNotOptimize(model.times(c.shape, 4, c.from, c.to));
  }
}

void reprice(benchmark::State& state) {
  const Case c = make_case(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  const ReshardingModel model(c.mesh, CollectiveModel(c.cluster, {}), 900e9);
  const auto routes = model.routes(c.shape, 4, c.from, c.to);
  for (auto _ : state) benchmark::DoNotOptimize(model.reprice(routes));
}

BENCHMARK(times)->Args({2, 3})->Args({2, 4})->Args({4, 3})->Args({4, 4})->Unit(benchmark::kMillisecond);
BENCHMARK(times_cold)->Args({2, 3})->Args({4, 4})->Unit(benchmark::kMillisecond);
BENCHMARK(reprice)->Args({2, 3})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace turnpoint

BENCHMARK_MAIN();
