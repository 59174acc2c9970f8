// SPDX-License-Identifier: Apache-2.0
// What benchmarks share that measure this machine, search plans for it and run their training steps.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/probe/measure_machine.h"
#include "core/probe/step_client.h"
#include "core/search/registry.h"
#include "core/validation/validate_plans.h"

namespace turnpoint::bench {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

template <class T>
T value_of(Expected<T> expected) {
  if (!expected) fail(expected.error().message());
  return std::move(*expected);
}

inline ResultPtr search(const ScenarioPtr& scenario, const std::string& method) {
  const MethodChoice choice = value_of(choose_method(method));
  const auto searcher = value_of(make_searcher(*choice.method, choice.parameters));
  return value_of(searcher->run(scenario, SearchPass::exact, {}));
}

inline StepRunner runner_of(const std::string& program) {
  ProbeLaunch launch;
  launch.program = program;
  return [launch](const StepJob& job, const RunContext& context) { return measure_step(launch, job, context); };
}

inline bool check(const char* what, double found, double bar, bool at_least) {
  const bool good = at_least ? found >= bar : found <= bar;
  std::printf("%-58s %8.3f   bar %6.3f   %s\n", what, found, bar, good ? "met" : "MISSED");
  return good;
}

/// turnpoint-probe: built beside the other programs, not beside a benchmark.
inline std::string probe_here() {
  const char* named = std::getenv("TURNPOINT_PROBE");
  return named ? named : TURNPOINT_BINARY_DIR "/turnpoint-probe";
}

/// What turnpoint-probe sees of this machine now, on CPU ranks; of the operators of `model` too where there is one.
inline Measurement measured_here(const std::string& program, int ranks, double budget_s, const ModelPtr& model) {
  MeasureOptions measure;
  measure.program = program;
  measure.backend = ProbeBackend::cpu;
  measure.ranks = ranks;
  measure.model = model;
  measure.budget_s = budget_s;
  measure.item_s = 0.05;
  measure.kept_in.clear();  // a benchmark measures
  return value_of(measure_machine(measure, {}));
}

inline ScenarioPtr scenario_on(const Measurement& machine, const ModelPtr& model) {
  Settings settings;
  settings.batch = model->batch;
  settings.sequence = model->sequence;
  return value_of(make_scenario(model, machine.profile.cluster, "local", settings));
}

/// Relative to the measured value. Ends the benchmark where there is none.
inline double error_of(const ComparedValue& value) {
  if (!value.measured || *value.measured <= 0) fail(value.name + " was not measured");
  return value.predicted / *value.measured - 1;
}

}  // namespace turnpoint::bench
