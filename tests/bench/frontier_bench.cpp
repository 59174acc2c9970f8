// SPDX-License-Identifier: Apache-2.0
// Exact and coarse frontiers of seeded problems in the shape of parallelisation searches. Cost tables are given; the
// time covers presolve, bounds, lists and tracing of every plan.
#include <benchmark/benchmark.h>

#include <functional>

#include "core/frontier/solver.h"
#include "frontier/layered.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

void solve(benchmark::State& state, const std::function<Problem()>& make, Pass pass) {
  const Problem problem = make();
  SolveOptions options;
  options.pass = pass;
  Solver solver;
  RunContext context;
  (void)solver.solve(problem, options, context);  // structure and memory are kept, as under a slider
  for (auto _ : state) {
    const auto answer = solver.solve(problem, options, context);
    if (!answer) {
      state.SkipWithError(answer.error().message().c_str());
      return;
    }
    state.counters["points"] = static_cast<double>(answer->points.size());
    state.counters["gap_percent"] = answer->gap * 100;
    state.counters["exact"] = answer->exact;
  }
}

void add(const std::string& name, const std::function<Problem()>& make, bool exact = true) {
  const auto configure = [](benchmark::internal::Benchmark* b) {
    b->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1)->Repetitions(5)->ReportAggregatesOnly(true);
  };
  if (exact)
    configure(benchmark::RegisterBenchmark(("exact/" + name).c_str(),
                                           [make](benchmark::State& s) { solve(s, make, Pass::exact); }));
  configure(benchmark::RegisterBenchmark(("coarse/" + name).c_str(),
                                         [make](benchmark::State& s) { solve(s, make, Pass::coarse); }));
}

}  // namespace

int main(int argc, char** argv) {
  add("rnn_like_40_200_12", [] { return layered_chain(1, 40, 200, 12); });
  add("transformer_like_200_100_12", [] { return layered_chain(1, 200, 100, 12); });
  add("wide_resnet_like_300_200_35", [] { return layered_chain(1, 300, 200, 35); });
  add("residual_50x4_100_40", [] { return residual_blocks(1, 50, 4, 100, 40, 40, 3, false); });
  add("residual_24x10_200_175_76", [] { return residual_blocks(1, 24, 10, 200, 175, 76, 2, false); });
  add("tied_24x10_200_175_76", [] { return residual_blocks(1, 24, 10, 200, 175, 76, 2, true); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
