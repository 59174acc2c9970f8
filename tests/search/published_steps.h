// SPDX-License-Identifier: Apache-2.0
// The training steps that the paper of update sharding times (Xu et al., arXiv 2004.13336, Table 1 and text), as
// scenarios. Shared by the test, which asserts the bars, and by the benchmark, which prints the figures.
//
// A device is one core of a TPU v3, one replica each, as in the paper; 16-bit products with fp32 master weights, states
// and gradients. The paper does not state how long its sequences are: 256 tokens is the longest of the MLPerf
// reference.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/hardware/cluster.h"
#include "core/import/source/model_source.h"
#include "core/search/registry.h"

namespace turnpoint::test {

struct PublishedStep {
  const char* network;
  int cores;
  std::int64_t batch;
  Optimizer optimizer;
  double replicated_ms, sharded_ms;    ///< as published; 0: not in print
  double percent;                      ///< published change of the step's time; 0: lost, 1: the paper has no such run
  double least_percent, most_percent;  ///< the bar of that change here
};

constexpr double kLost = 0, kNoSuchRun = 1;
/// "Transformer at 2,048 cores: 46.5 to 25.6 ms", "about 9 %" at 32, "6 %" for ResNet-50 at 2,048.
constexpr PublishedStep kPublishedSteps[] = {
    {"resnet50", 32, 4096, Optimizer::lars, 0, 0, kLost, -100, 0},
    {"resnet50", 2048, 32768, Optimizer::lars, 0, 0, -6, -100, 0},
    {"transformer-big", 32, 512, Optimizer::adam, 0, 0, -9, -100, 0},
    {"transformer-big", 2048, 2048, Optimizer::adam, 46.5, 25.6, -44.9, -55, -30},
    {"ncf", 32, 98304, Optimizer::adam, 0, 0, kLost, -100, 0},
    {"ncf", 2048, 98304, Optimizer::adam, 0, 0, kNoSuchRun, -100, 0},
};

struct StepOptions {
  std::int64_t sequence = 0;  ///< 0: the model's
  Gradients gradients = Gradients::fp32;
  double links = 1;  ///< factor of all bandwidths
};

inline Expected<ScenarioPtr> published_scenario(const PublishedStep& step, Optimizer optimizer,
                                                const StepOptions& options = {}) {
  const auto source = open_model(std::string("builtin:") + step.network);
  if (!source) return source.error();
  const auto model = (*source)->bind({step.batch, options.sequence});
  if (!model) return model.error();
  const std::string hardware = "tpu-v3-core-" + std::to_string(step.cores / 8) + "x8";
  const auto cluster = open_hardware(hardware);
  if (!cluster) return cluster.error();
  Settings settings;
  settings.batch = step.batch, settings.sequence = (*model)->sequence;
  settings.precision = Precision::bf16;
  settings.gradients = options.gradients;
  settings.optimizer = optimizer;
  settings.factors.intra_bandwidth = settings.factors.inter_bandwidth = options.links;
  return make_scenario(*model, *cluster, hardware, settings);
}

/// `method` is data-parallel, which updates every weight whole on every replica, or update-sharding.
inline Expected<ResultPtr> published_result(const char* method, const ScenarioPtr& scenario) {
  const auto found = find_method(method);
  if (!found) return found.error();
  const auto searcher = make_searcher(**found, "");
  if (!searcher) return searcher.error();
  return (*searcher)->run(scenario, SearchPass::exact, {});
}

/// By how many per cent the step gets longer; negative: shorter.
inline double change_percent(double replicated_s, double sharded_s) { return 100 * (sharded_s / replicated_s - 1); }

}  // namespace turnpoint::test
