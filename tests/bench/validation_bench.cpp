// SPDX-License-Identifier: Apache-2.0
// Predicted against measured on CPU ranks of this machine: plans of a frontier are run by turnpoint-probe, before
// calibration predicted from kernels that ran alone, after it each from what the other plans showed. Fails above the
// bars. Usage: validation_bench [--ranks N] [--plans N] [--steps N] [--runs N] [--model NAME] [--batch N]
//   validation_bench --placements [--ranks N] [--steps N]: the fastest placement of several methods on networks of
//   every kind, as measuring those networks alone predicts it: what it computes, holds and sends, and how long it
//   takes.
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/measured_here.h"
#include "core/base/text.h"
#include "core/import/source/model_source.h"

using namespace turnpoint;
using namespace turnpoint::bench;

namespace {

constexpr double kStepBar = 0.25, kRankBar = 0.8, kPeakBar = 0.05;

struct Options {
  int ranks = 2, plans = 20, steps = 60, runs = 3;
  std::string model = "builtin:lenet", program;
  std::int64_t batch = 64, sequence = 0;
  double measure_s = 40;
  bool placements = false;
};

/// On this machine, as it is measured now.
ScenarioPtr scenario_here(const Options& options) {
  const auto source = value_of(open_model(options.model));
  const ModelPtr model = value_of(source->bind({options.batch, options.sequence}));
  return scenario_on(measured_here(options.program, options.ranks, options.measure_s, model), model);
}

double largest_bytes_error(const std::vector<ValidationReport>& reports) {
  double worst = 0;
  for (const auto& report : reports)
    worst = std::max(worst, std::abs(report.bytes_sent.predicted - report.bytes_sent.measured.value_or(-1)) /
                                std::max(1.0, report.bytes_sent.predicted));
  return worst;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--placements") options.placements = true;
    if (i + 1 == argc) break;
    if (key == "--ranks") options.ranks = std::atoi(argv[i + 1]);
    if (key == "--plans") options.plans = std::atoi(argv[i + 1]);
    if (key == "--steps") options.steps = std::atoi(argv[i + 1]);
    if (key == "--runs") options.runs = std::atoi(argv[i + 1]);
    if (key == "--model") options.model = argv[i + 1];
    if (key == "--batch") options.batch = std::atoll(argv[i + 1]);
  }
  options.program = probe_here();
  return options;
}

/// Networks of every kind, small enough to be proven in double.
struct Network {
  const char* model;
  std::int64_t batch, sequence;
};
constexpr Network kNetworks[] = {
    {"builtin:lenet", 64, 0},
    {"builtin:lstm-lm?layers=2&hidden=128", 16, 8},
    {"builtin:gnmt?layers=2&hidden=64", 8, 6},
    {"builtin:resnet18?width=16", 2, 0},
    {"builtin:bert-large?layers=2&hidden=128", 8, 64},
    {"builtin:ncf?hidden=16", 256, 0},
};

int placements(Options options) {
  // A part of all bytes: cells of LSTMs beside the outputs that the simulator takes for the same tensor.
  constexpr double kBytesBar = 0.02;
  double above_peak = 0, below_peak = 0, worst_bytes = 0, worst_step = 0, all_steps = 0;
  int rows = 0, proven = 0;
  const StepRunner runner = runner_of(options.program);
  StepChoice choice;
  choice.steps = options.steps;
  choice.budget_s = 40;
  options.measure_s = 15;
  std::printf("%-42s %-20s %22s %7s %7s %7s\n", "", "", "step pred. / measured", "", "peak", "bytes");
  for (const Network& network : kNetworks) {
    options.model = network.model, options.batch = network.batch, options.sequence = network.sequence;
    const ScenarioPtr scenario = scenario_here(options);
    for (const char* method : {"pardnn", "pardnn:whole-layers", "heft", "round-robin"}) {
      const ResultPtr result = search(scenario, method);
      ValidatedPlan plan = value_of(validate_point(*result, result->points.size() - 1, choice, "", runner, {}));
      for (int run = 1; run < options.runs; ++run)
        if (auto done = run_again(*result, plan, choice, runner, {}); !done) fail(done.error().message());
      const ValidationReport& report = plan.report;
      const double step = error_of(report.step), bytes = error_of(report.bytes_sent);
      // Of the fullest device. What others hold for how long, waiting for it, is a matter of the times.
      double peak = 0;
      for (const ComparedValue& held : report.memory)
        if (held.name == "peak") peak = error_of(held);
      ++rows;
      proven += report.numerics && report.numerics->holds();
      above_peak = std::max(above_peak, -peak);
      below_peak = std::max(below_peak, peak);
      worst_bytes = std::max(worst_bytes, std::abs(bytes));
      worst_step = std::max(worst_step, std::abs(step));
      all_steps += std::abs(step);
      std::printf("%-42s %-20s %9.3f / %7.3f ms %+6.1f%% %+6.1f%% %+6.1f%%%s\n", network.model, method,
                  report.step.predicted * 1e3, report.step.measured.value_or(0) * 1e3, step * 100, peak * 100,
                  bytes * 100, report.numerics && report.numerics->holds() ? "" : "  not proven");
      std::fflush(stdout);
    }
  }
  std::printf("step time, uncalibrated: mean error %.3f, largest %.3f\n", all_steps / rows, worst_step);
  // What has arrived and waits for its reader is held as the simulator has it; here it lies in the room of its
  // transfer, which no rank counts, until the reader begins. So peaks may be lower than predicted, and must not be
  // higher.
  std::printf("peak memory below what was predicted, at most %.3f\n", below_peak);
  bool good = check("peak memory above what was predicted, at most", above_peak, kPeakBar, false);
  good = check("bytes sent, largest error", worst_bytes, kBytesBar, false) && good;
  good = check("placed steps that equal the whole model's", double(proven) / rows, 1, true) && good;
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.placements) return placements(options);
  const ResultPtr result = search(scenario_here(options), "ft");
  std::printf("%s, batch %lld, %d ranks: %zu points of ft\n", options.model.c_str(),
              static_cast<long long>(options.batch), options.ranks, result->points.size());
  StepChoice choice;
  choice.steps = options.steps;
  choice.budget_s = 20;
  const StepRunner runner = runner_of(options.program);
  std::vector<ValidatedPlan> plans;
  for (const std::size_t point : sampled_points(*result, static_cast<std::size_t>(options.plans), 0)) {
    plans.push_back(value_of(validate_point(*result, point, choice, "", runner, {})));
    std::fprintf(stderr, "\r%zu plans", plans.size());
  }
  for (int run = 1; run < options.runs; ++run)
    for (ValidatedPlan& plan : plans)
      if (auto done = run_again(*result, plan, choice, runner, {}); !done) fail(done.error().message());
  std::vector<ValidationReport> before;
  bool proved = true;
  for (const ValidatedPlan& plan : plans) {
    before.push_back(plan.report);
    const auto& numerics = plan.report.numerics;
    const bool holds = numerics && numerics->holds();
    if (!holds)
      std::printf("%s: %s\n", plan.report.plan.c_str(),
                  numerics ? fmt::format("loss differs by {:.2g}, gradients by {:.2g}, at {}", numerics->loss_error,
                                         numerics->gradient_error, numerics->where)
                                 .c_str()
                           : "not compared with the unpartitioned step");
    proved = proved && holds;
  }
  const CalibratedPlans after = value_of(calibrate_plans(*result->scenario, plans));
  std::printf("\nbefore calibration\n%s\nafter calibration\n%s\n", write_summary_markdown(before).c_str(),
              write_summary_markdown(after.reports).c_str());
  for (const auto& note : after.notes) std::printf("%s\n", note.c_str());
  const ErrorSummary summary = summarise(after.reports);
  bool good = check("step time after calibration, mean error", summary.rows[0].mean, kStepBar, false);
  good = check("rank correlation of step times", summary.rank_correlation.value_or(-1), kRankBar, true) && good;
  good = check("peak memory, largest error", summary.rows[3].worst, kPeakBar, false) && good;
  good = check("bytes sent, largest error", largest_bytes_error(before), 0, false) && good;
  good = check("steps that equal the unpartitioned one", proved ? 1 : 0, 1, true) && good;
  return good ? 0 : 1;
}
