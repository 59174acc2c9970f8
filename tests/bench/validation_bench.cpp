// SPDX-License-Identifier: Apache-2.0
// Predicted against measured on CPU ranks of this machine: plans of a frontier are run by turnpoint-probe, before
// calibration predicted from kernels that ran alone, after it each from what the other plans showed. Fails above the
// bars. Usage: validation_bench [--ranks N] [--plans N] [--steps N] [--runs N] [--model NAME] [--batch N]
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/text.h"
#include "core/import/source/model_source.h"
#include "core/probe/measure_machine.h"
#include "core/probe/step_client.h"
#include "core/search/registry.h"
#include "core/validation/validate_plans.h"

using namespace turnpoint;

namespace {

constexpr double kStepBar = 0.25, kRankBar = 0.8, kPeakBar = 0.05;

struct Options {
  int ranks = 2, plans = 20, steps = 60, runs = 3;
  std::string model = "builtin:lenet", program;
  std::int64_t batch = 64;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "validation_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T value_of(Expected<T> expected) {
  if (!expected) fail(expected.error().message());
  return std::move(*expected);
}

ResultPtr search_here(const Options& options) {
  const auto source = value_of(open_model(options.model));
  const ModelPtr model = value_of(source->bind({options.batch, 0}));
  MeasureOptions measure;
  measure.program = options.program;
  measure.backend = ProbeBackend::cpu;
  measure.ranks = options.ranks;
  measure.model = model;
  measure.budget_s = 40;
  measure.item_s = 0.05;
  measure.kept_in.clear();  // a benchmark measures
  const Measurement machine = value_of(measure_machine(measure, {}));
  Settings settings;
  settings.batch = options.batch;
  const ScenarioPtr scenario = value_of(make_scenario(model, machine.profile.cluster, "local", settings));
  const auto searcher = value_of(make_searcher(**find_method("ft")));
  return value_of(searcher->run(scenario, SearchPass::exact, {}));
}

double largest_bytes_error(const std::vector<ValidationReport>& reports) {
  double worst = 0;
  for (const auto& report : reports)
    worst = std::max(worst, std::abs(report.bytes_sent.predicted - report.bytes_sent.measured.value_or(-1)) /
                                std::max(1.0, report.bytes_sent.predicted));
  return worst;
}

bool check(const char* what, double found, double bar, bool at_least) {
  const bool good = at_least ? found >= bar : found <= bar;
  std::printf("%-58s %8.3f   bar %6.3f   %s\n", what, found, bar, good ? "met" : "MISSED");
  return good;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--ranks") options.ranks = std::atoi(argv[i + 1]);
    if (key == "--plans") options.plans = std::atoi(argv[i + 1]);
    if (key == "--steps") options.steps = std::atoi(argv[i + 1]);
    if (key == "--runs") options.runs = std::atoi(argv[i + 1]);
    if (key == "--model") options.model = argv[i + 1];
    if (key == "--batch") options.batch = std::atoll(argv[i + 1]);
  }
  // Built beside the other programs, not beside this one.
  const char* named = std::getenv("TURNPOINT_PROBE");
  options.program = named ? named : TURNPOINT_BINARY_DIR "/turnpoint-probe";
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const ResultPtr result = search_here(options);
  std::printf("%s, batch %lld, %d ranks: %zu points of ft\n", options.model.c_str(),
              static_cast<long long>(options.batch), options.ranks, result->points.size());
  ProbeLaunch launch;
  launch.program = options.program;
  StepChoice choice;
  choice.steps = options.steps;
  choice.budget_s = 20;
  const StepRunner runner = [&](const StepJob& job, const RunContext& context) {
    return measure_step(launch, job, context);
  };
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
