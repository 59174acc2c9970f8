// SPDX-License-Identifier: Apache-2.0
// Frontier tracking on real models for 16 devices (2 x 8 V100): exact, coarse, and slider move to new coarse curve.
//   build/bench/search_bench [--benchmark_filter=...]
// Exact and coarse: median of the repetitions, tables included, files excluded. Slider: every repetition is one move of
// a bandwidth slider on a warm searcher; read `p95`. Counters: points, gap (fraction; 0 when exact).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/import/source/model_source.h"
#include "core/search/registry.h"

namespace {

using namespace turnpoint;

std::string data_file(const std::string& name) {
  const char* folder = std::getenv("TURNPOINT_DATA");
  return (folder ? std::string(folder) : std::string("../shared/data")) + "/" + name;
}

ScenarioPtr open(const std::string& specification, const std::string& hardware) {
  const auto source = open_model(specification);
  if (!source) {
    std::fprintf(stderr, "%s\n", source.error().message().c_str());
    return nullptr;
  }
  Settings settings;
  const auto model = (*source)->bind({settings.batch, settings.sequence});
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    return nullptr;
  }
  const auto cluster = open_hardware(hardware);
  if (!cluster) return nullptr;
  const auto scenario = make_scenario(*model, *cluster, hardware, settings);
  return scenario ? *scenario : nullptr;
}

ScenarioPtr moved(const ScenarioPtr& scenario, double inter, double intra) {
  auto next = std::make_shared<Scenario>(*scenario);
  next->settings.factors.inter_bandwidth = inter;
  next->settings.factors.intra_bandwidth = intra;
  return next;
}

void note(benchmark::State& state, const Result& result) {
  state.counters["points"] = static_cast<double>(result.points.size());
  state.counters["gap"] = result.gap.value_or(-1);
}

void exact(benchmark::State& state, const ScenarioPtr& scenario) {
  for (auto _ : state) {
    auto searcher = std::move(*make_searcher(**find_method("ft")));
    const auto result = searcher->run(scenario, SearchPass::exact, {});
    if (!result) {
      state.SkipWithError(result.error().message().c_str());
      return;
    }
    note(state, **result);
  }
}

void coarse(benchmark::State& state, const ScenarioPtr& scenario) {
  for (auto _ : state) {
    auto searcher = std::move(*make_searcher(**find_method("ft")));
    const auto result = searcher->run(scenario, SearchPass::coarse, {});
    if (!result) {
      state.SkipWithError(result.error().message().c_str());
      return;
    }
    note(state, **result);
  }
}

void slider(benchmark::State& state, const ScenarioPtr& scenario, Searcher& searcher, int& step) {
  for (auto _ : state) {
    ++step;
    const double factor = std::exp2(3.0 * std::sin(0.37 * step));
    const auto result = searcher.run(moved(scenario, factor, step % 3 ? 1.0 : 1.0 / factor), SearchPass::coarse, {});
    if (!result) {
      state.SkipWithError(result.error().message().c_str());
      return;
    }
    note(state, **result);
  }
}

double p95(const std::vector<double>& values) {
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, sorted.size() * 95 / 100)];
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<std::string, std::string> models[] = {
      {"vit-b-16", data_file("onnx/exported/vit_b_16_ext.onnx")},
      {"resnet-50", data_file("onnx/exported/resnet50_train_inputs.onnx")},
      {"gpt2", data_file("hf_config/gpt2.json")},
      {"rnn", "builtin:rnn"},
      {"wide-resnet", "builtin:wide-resnet"},
      {"transformer", "builtin:transformer"},
      {"vgg16", "builtin:vgg16"},
  };
  for (const auto& [name, specification] : models) {
    if (specification[0] != 'b' && !std::filesystem::exists(specification)) {
      std::fprintf(stderr, "%s: %s is absent (set TURNPOINT_DATA), left out\n", name.c_str(), specification.c_str());
      continue;
    }
    const auto scenario = open(specification, "v100-16gb-2x8");
    if (!scenario) continue;
    benchmark::RegisterBenchmark((name + "/exact").c_str(), exact, scenario)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->Repetitions(3)
        ->ReportAggregatesOnly()
        ->UseRealTime();
    benchmark::RegisterBenchmark((name + "/coarse").c_str(), coarse, scenario)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->Repetitions(5)
        ->ReportAggregatesOnly()
        ->UseRealTime();
    const auto searcher = std::shared_ptr<Searcher>(std::move(*make_searcher(**find_method("ft"))));
    const auto step = std::make_shared<int>(0);
    benchmark::RegisterBenchmark(
        (name + "/slider").c_str(),
        [scenario, searcher, step](benchmark::State& state) { slider(state, scenario, *searcher, *step); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->Repetitions(41)
        ->ReportAggregatesOnly()
        ->UseRealTime()
        ->ComputeStatistics("p95", p95);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
