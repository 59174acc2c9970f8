// SPDX-License-Identifier: Apache-2.0
// From measuring to predicting: how far training steps on CPU ranks of this machine are from what `measure` alone leads
// one to expect, nothing calibrated. Once plain, as `turnpoint-cli measure` without a model, and once as
// `measure --model`: the frontier of `ft` is searched on each profile, plans spread over it are run. Seven networks of
// five kinds, and two unseen ones, by which nothing in the probe or in the prices was chosen. Fails above the bars, of
// which the one of steps is for every plan that is run.
//
// Usage: measuring_bench [--ranks N] [--plans N] [--steps N] [--runs N] [--budget S] [--only WORD] [--list]
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "bench/measured_here.h"
#include "core/import/source/model_source.h"
#include "core/model/builder.h"

using namespace turnpoint;
using namespace turnpoint::bench;

namespace {

constexpr double kModelBar = 0.25, kPlainBar = 0.40, kRankBar = 0.9;

struct Network {
  const char* kind;
  const char* model;  ///< built in; empty: perceptron()
  std::int64_t batch, sequence;
};
constexpr Network kNetworks[] = {
    {"perceptron", "", 128, 0},
    {"convolutional", "builtin:lenet", 64, 0},
    {"residual", "builtin:resnet18?width=16", 8, 0},
    {"LSTM", "builtin:lstm-lm?layers=2&hidden=128", 16, 8},
    {"transformer", "builtin:bert-large?layers=2&hidden=128", 8, 64},
    {"convolutional", "builtin:vgg11?width=8&hidden=256", 8, 0},
    {"transformer", "builtin:gpt2?layers=2&hidden=192", 4, 96},
    {"unseen", "builtin:gnmt?layers=2&hidden=64", 8, 6},
    {"unseen", "builtin:ncf?hidden=16", 256, 0},
};

struct Options {
  int ranks = 2, plans = 6, steps = 15, runs = 2;
  double budget_s = 60;
  std::string only;
  bool list = false;
};

ModelPtr perceptron(std::int64_t batch) {
  ModelBuilder b("perceptron", "bench", batch, 0);
  constexpr std::array<std::int64_t, 5> kWidths{784, 512, 512, 256, 10};
  TensorId x = b.input("x", {batch, kWidths[0]}, {DimName::batch, DimName::channel}, ElementType::f32);
  for (std::size_t i = 0; i + 1 < kWidths.size(); ++i) {
    x = b.linear(fmt::format("fc{}", i), x, b.parameter(fmt::format("w{}", i), {kWidths[i], kWidths[i + 1]}),
                 b.parameter(fmt::format("b{}", i), {kWidths[i + 1]}));
    if (i + 2 == kWidths.size()) break;
    const std::array in{x};
    x = b.elementwise(fmt::format("relu{}", i), "Relu", in, {1, true, {}});
  }
  return value_of(b.finish({x}));
}

ModelPtr model_of(const Network& network) {
  if (!*network.model) return perceptron(network.batch);
  return value_of(value_of(open_model(network.model))->bind({network.batch, network.sequence}));
}

/// Where a plan's error comes from: its parts, and the operators and collectives that contribute most of it.
void list(const ValidationReport& report) {
  const auto line = [](const ComparedValue& value) {
    const double measured = value.measured.value_or(0);
    return fmt::format("{:10.1f} {:10.1f} us {:+7.1f} %  {} ({})", value.predicted * 1e6, measured * 1e6,
                       error_of(value) * 100, value.name, to_string(value.source));
  };
  std::printf("  %s\n  %s\n  %s\n  %s\n", report.plan.c_str(), line(report.step).c_str(),
              line(report.execution).c_str(), line(report.network).c_str());
  std::vector<ComparedValue> parts = report.operators;
  parts.insert(parts.end(), report.collectives.begin(), report.collectives.end());
  const auto off = [](const ComparedValue& value) { return std::abs(value.predicted - value.measured.value_or(0)); };
  std::ranges::sort(parts, [&](const auto& a, const auto& b) { return off(a) > off(b); });
  for (std::size_t i = 0; i < std::min<std::size_t>(12, parts.size()); ++i)
    std::printf("      %s\n", line(parts[i]).c_str());
}

/// Of the plans of one network's frontier on one profile.
struct Outcome {
  double mean = 0, largest = 0, fastest = 0;  ///< of the step's error, signed where it is largest and of the fastest
  double spread = 1;                          ///< slowest measured step over the fastest
  std::optional<double> order;
};

Outcome run(const ScenarioPtr& scenario, const Options& options, const StepRunner& runner) {
  const ResultPtr result = search(scenario, "ft");
  StepChoice choice;
  choice.steps = options.steps;
  choice.budget_s = 20;
  std::vector<ValidatedPlan> plans;
  for (const std::size_t point : sampled_points(*result, static_cast<std::size_t>(options.plans), 0))
    plans.push_back(value_of(validate_point(*result, point, choice, "", runner, {})));
  for (int again = 1; again < options.runs; ++again)
    for (ValidatedPlan& plan : plans)
      if (auto done = run_again(*result, plan, choice, runner, {}); !done) fail(done.error().message());
  Outcome outcome;
  double least = 1e9, most = 0, shortest = 1e9;
  std::vector<double> predicted, measured;
  for (const ValidatedPlan& plan : plans) {
    if (options.list) list(plan.report);
    const double error = error_of(plan.report.step), step = plan.report.step.measured.value_or(0);
    predicted.push_back(plan.report.step.predicted);
    measured.push_back(step);
    outcome.mean += std::abs(error) / static_cast<double>(plans.size());
    if (std::abs(error) > std::abs(outcome.largest)) outcome.largest = error;
    if (plan.report.step.predicted < shortest) shortest = plan.report.step.predicted, outcome.fastest = error;
    least = std::min(least, step), most = std::max(most, step);
  }
  outcome.spread = most / least;
  outcome.order = spearman(predicted, measured);
  return outcome;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--list") options.list = true;
    if (i + 1 == argc) break;
    if (key == "--ranks") options.ranks = std::atoi(argv[i + 1]);
    if (key == "--plans") options.plans = std::atoi(argv[i + 1]);
    if (key == "--steps") options.steps = std::atoi(argv[i + 1]);
    if (key == "--runs") options.runs = std::atoi(argv[i + 1]);
    if (key == "--budget") options.budget_s = std::atof(argv[i + 1]);
    if (key == "--only") options.only = argv[i + 1];
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::string program = probe_here();
  const StepRunner runner = runner_of(program);
  const Measurement plain = measured_here(program, options.ranks, options.budget_s, nullptr);
  std::printf("%-14s %-42s %-8s %8s %8s %8s %8s %8s\n", "kind", "network", "measured", "mean", "largest", "fastest",
              "spread", "order");
  bool good = true;
  int rows = 0;
  for (const Network& network : kNetworks) {
    if (!options.only.empty() && std::string(network.model).find(options.only) == std::string::npos &&
        network.kind != options.only)
      continue;
    const ModelPtr model = model_of(network);
    for (const bool with_model : {false, true}) {
      const Measurement own = with_model ? measured_here(program, options.ranks, options.budget_s, model) : plain;
      const Outcome found = run(scenario_on(own, model), options, runner);
      const bool met =
          std::abs(found.largest) <= (with_model ? kModelBar : kPlainBar) && found.order.value_or(-1) >= kRankBar;
      good = good && met;
      ++rows;
      std::printf("%-14s %-42s %-8s %7.1f%% %+7.1f%% %+7.1f%% %8.2f %8s%s\n", network.kind,
                  *network.model ? network.model : "perceptron", with_model ? "model" : "plain", found.mean * 100,
                  found.largest * 100, found.fastest * 100, found.spread,
                  found.order ? fmt::format("{:.3f}", *found.order).c_str() : "-", met ? "" : "  MISSED");
      std::fflush(stdout);
    }
  }
  if (rows == 0) fail("no network is called '" + options.only + "'");
  return good ? 0 : 1;
}
