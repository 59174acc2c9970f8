// SPDX-License-Identifier: Apache-2.0
// `validate` runs the training step of chosen plans with turnpoint-probe and puts what was predicted beside it.
#include <fmt/format.h>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/chosen_point.h"
#include "app/cli/commands.h"
#include "app/cli/one_result.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/export/format.h"
#include "core/hardware/probe_local.h"
#include "core/probe/step_client.h"
#include "core/search/reopen.h"
#include "core/validation/engine/engine_validation.h"
#include "core/validation/placement_step.h"
#include "core/validation/validate_plans.h"

namespace turnpoint::cli {

namespace {

constexpr int kMostPlans = 1000;

struct Arguments {
  std::string file, method, backend = "auto", kernels = "auto", out, csv, markdown, profile, job_out, from, record,
                            launcher;
  std::optional<std::string> point;
  int plans = 1, slice = -1, device = 0, steps = 10, runs = 1, warm_up = 2, threads = 0;
  std::vector<std::string> slow;
  double budget_s = 60;
  std::uint64_t seed = 1;
  bool calibrate = false, no_proof = false;
  std::string engine, model_code, python;
};

std::string now() {
  const std::time_t time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// Of "RANK:FACTOR", "1:2": by rank.
Expected<std::vector<double>> slow_ranks(const std::vector<std::string>& given) {
  std::vector<double> slow;
  for (const std::string& one : given) {
    const auto parts = split(one, ':');
    const auto rank = parts.size() == 2 ? parse_int(parts[0]) : std::nullopt;
    const auto factor = parts.size() == 2 ? parse_double(parts[1]) : std::nullopt;
    if (!rank || !factor || *rank < 0 || *rank >= kMaximumProbeRanks || !(*factor >= 1 && *factor <= kMostSlowness))
      return usage_error(
          fmt::format("--slow takes a rank and how many times as long it is to take, from 1 to {}: "
                      "'1:2', not '{}'",
                      kMostSlowness, one));
    const auto number = static_cast<std::size_t>(*rank);
    if (slow.size() <= number) slow.resize(number + 1, 1);
    slow[number] = *factor;
  }
  return slow;
}

Expected<const Engine*> engine_of(const std::string& key) {
  if (const Engine* engine = find_engine(key)) return engine;
  std::vector<std::string> known;
  for (const Engine& engine : engines()) known.emplace_back(engine.key);
  return usage_error(fmt::format("--engine knows {}, not '{}'", listed(known), key));
}

/// Of an engine many things cannot be asked that our own probe does.
Expected<void> check_engine(const Arguments& arguments) {
  if (arguments.engine.empty()) {
    if (!arguments.model_code.empty() || !arguments.python.empty())
      return usage_error("--model-code and --python are for an engine; give --engine");
    return {};
  }
  if (const auto engine = engine_of(arguments.engine); !engine) return engine.error();
  for (const auto& [given, option] : {std::pair{arguments.calibrate, "--calibrate"},
                                      {arguments.slice >= 0, "--slice"},
                                      {!arguments.slow.empty(), "--slow"},
                                      {arguments.runs > 1, "--runs"},
                                      {arguments.device != 0, "--device"},
                                      {arguments.kernels != "auto", "--cpu-kernels"},
                                      {!arguments.job_out.empty(), "--job-out"},
                                      {!arguments.from.empty(), "--from"},
                                      {!arguments.record.empty(), "--record"}})
    if (given) return usage_error(fmt::format("{} is for turnpoint-probe, not for an engine", option));
  return {};
}

Expected<StepChoice> choice_of(const Arguments& arguments) {
  StepChoice choice;
  bool known = false;
  for (const auto backend : {ProbeBackend::automatic, ProbeBackend::cpu, ProbeBackend::cuda})
    if (arguments.backend == to_string(backend)) choice.backend = backend, known = true;
  if (!known) return usage_error(fmt::format("--backend knows auto, cpu and cuda, not '{}'", arguments.backend));
  if (!arguments.profile.empty() && !arguments.calibrate)
    return usage_error("--profile-out is where --calibrate writes; give both");
  if (!arguments.job_out.empty() && !arguments.from.empty())
    return usage_error("--job-out writes what is to be run and --from reads what was; give one of them");
  if ((!arguments.job_out.empty() || !arguments.from.empty()) && (arguments.plans > 1 || arguments.runs > 1))
    return usage_error("--job-out and --from are for one run of one plan");
  if (auto fine = check_engine(arguments); !fine) return fine.error();
  choice.device = arguments.device;
  choice.mode = arguments.slice >= 0 ? StepMode::slice : StepMode::ranks;
  choice.slice_device = std::max(0, arguments.slice);
  choice.prove = !arguments.no_proof;
  choice.warm_up = arguments.warm_up;
  choice.steps = arguments.steps;
  choice.budget_s = arguments.budget_s;
  choice.cpu_kernels = *parse_cpu_kernels(arguments.kernels);
  choice.seed = arguments.seed;
  auto slow = slow_ranks(arguments.slow);
  if (!slow) return slow.error();
  choice.slow = std::move(*slow);
  // How many hosts run a job that is carried elsewhere, or started by a launcher, is known there.
  if (!arguments.launcher.empty() || !arguments.job_out.empty() || !arguments.from.empty())
    choice.most_ranks = kMaximumProbeRanks;
  return choice;
}

void say_value(const char* name, const ComparedValue& value, bool seconds) {
  const auto shown = [&](double number) {
    return seconds ? format_seconds(number) : format_bytes(static_cast<std::int64_t>(std::min(number, 4e18)));
  };
  std::string line = fmt::format("  {:<12} predicted {:>10}  ", name, shown(value.predicted));
  if (value.measured) {
    line += fmt::format("measured {:>10}", shown(*value.measured));
    if (const auto error = value.error()) line += fmt::format("  {:+.1f} %", 100 * *error);
  } else {
    line += "not measured (modelled)";
  }
  std::fprintf(stderr, "%s\n", line.c_str());
}

void say(const ValidationReport& report) {
  std::fprintf(stderr, "%s, %s%s%s %s, %d rank%s on %d %s%s\n", report.plan.c_str(), report.engine.c_str(),
               report.engine.empty() ? "" : ", ", report.backend.c_str(), report.mode.c_str(), report.ranks,
               report.ranks == 1 ? "" : "s", report.cores, report.backend == "cuda" ? "GPU" : "core",
               report.cores == 1 ? "" : "s");
  say_value("step", report.step, true);
  say_value("execution", report.execution, true);
  say_value("network", report.network, true);
  for (const auto& value : report.devices) say_value(value.name.c_str(), value, true);
  for (const auto& value : report.memory) say_value(value.name.c_str(), value, false);
  say_value("bytes sent", report.bytes_sent, false);
  for (const auto& exchange : report.exchanges)
    std::fprintf(
        stderr, "    %s: predicted %s in %lld, measured %s in %lld\n", exchange.name().c_str(),
        format_bytes(std::llround(exchange.predicted_bytes)).c_str(), static_cast<long long>(exchange.predicted_count),
        format_bytes(std::llround(exchange.measured_bytes)).c_str(), static_cast<long long>(exchange.measured_count));
  if (!report.losses.empty())
    std::fprintf(stderr, "  loss %.6g in the first of %zu steps, %.6g in the last\n", report.losses.front(),
                 report.losses.size(), report.losses.back());
  if (report.numerics)
    std::fprintf(stderr, "  the partitioned step %s the unpartitioned one: loss off by %.1e, gradients by %.1e\n",
                 report.numerics->holds() ? "equals" : "DIFFERS FROM", report.numerics->loss_error,
                 report.numerics->gradient_error);
  if (report.numerics && report.numerics->rounding)
    std::fprintf(stderr, "  %s\n", describe(*report.numerics->rounding).c_str());
  for (const auto& note : report.notes) std::fprintf(stderr, "  note: %s\n", note.c_str());
}

void say_summary(const char* title, const std::vector<ValidationReport>& reports) {
  const ErrorSummary summary = summarise(reports);
  std::fprintf(stderr, "%s\n", title);
  for (const auto& row : summary.rows)
    if (row.plans > 0)
      std::fprintf(stderr, "  %-12s error of %d plan%s: mean %.1f %%, median %.1f %%, largest %.1f %%\n",
                   row.name.c_str(), row.plans, row.plans == 1 ? "" : "s", 100 * row.mean, 100 * row.median,
                   100 * row.worst);
  if (summary.rank_correlation)
    std::fprintf(stderr, "  rank correlation of predicted and measured steps %.3f\n", *summary.rank_correlation);
}

/// A calibrated profile must not take the place of the one that the result was searched with: with its own numbers gone
/// the result could not be opened again.
Expected<void> check_profile(const std::string& path, const Scenario& scenario) {
  if (path.empty()) return {};
  const std::filesystem::path used =
      scenario.hardware == "local" ? local_profile_path() : std::filesystem::path(scenario.hardware);
  std::error_code ignored;
  if (used.empty() || !std::filesystem::equivalent(path, used, ignored)) return {};
  return usage_error(
      fmt::format("--profile-out {} is the profile that this result was searched with, which is not overwritten; give "
                  "another name",
                  path));
}

/// All that was asked for in files; the first failure is the exit code.
int write_all(const Arguments& arguments, const std::vector<ValidationReport>& reports) {
  const bool one = reports.size() == 1;
  int code = write_output(arguments.out,
                          (one ? write_validation(reports.front()) : write_validations(reports)).dump(1) + "\n");
  const auto add = [&](const std::string& path, const std::string& text) {
    if (path.empty()) return;
    if (const int written = write_output(path, text); code == kDone) code = written;
  };
  add(arguments.csv, one ? write_validation_csv(reports.front()) : write_validations_csv(reports));
  std::string markdown;
  for (const bool calibrated : {false, true}) {
    std::vector<ValidationReport> of_kind;
    for (const auto& report : reports)
      if (report.calibrated == calibrated) of_kind.push_back(report);
    if (one || of_kind.empty()) continue;
    markdown += fmt::format("# {}\n\n{}\n", calibrated ? "Calibrated" : "All plans", write_summary_markdown(of_kind));
  }
  for (const auto& report : reports) markdown += write_validation_markdown(report) + "\n";
  add(arguments.markdown, markdown);
  return code;
}

int calibrate(const Arguments& arguments, const Scenario& scenario, const std::vector<ValidatedPlan>& validated,
              std::vector<ValidationReport>& reports) {
  const auto made = calibrate_plans(scenario, validated);
  if (!made) return report(made.error());
  for (const auto& note : made->notes) std::fprintf(stderr, "calibrated: %s\n", note.c_str());
  say_summary("before calibration", reports);
  say_summary("after calibration", made->reports);
  reports.insert(reports.end(), made->reports.begin(), made->reports.end());
  if (arguments.profile.empty()) return kDone;
  return write_output(arguments.profile, write_hardware_profile(*made->cluster));
}

int write_job(const Arguments& arguments, const Result& result, std::size_t point, const StepChoice& choice) {
  if (!result.plans) return report(usage_error("the result has no plans"));
  const auto job = step_job_of(*result.scenario, result.plans->plan(point), choice);
  if (!job) return report(job.error());
  return write_output(arguments.job_out, write_step_job(*job));
}

/// Reads a recording, or has a probe run the job; what it says goes to `lines`, which must outlive the runner.
Expected<StepRunner> runner_of(const Arguments& arguments, std::string& lines) {
  if (!arguments.from.empty())
    return StepRunner([&](const StepJob& job, const RunContext&) { return read_step_recording(arguments.from, job); });
  auto launcher = launcher_words(arguments.launcher);
  if (!launcher) return launcher.error();
  const auto program = find_probe();
  if (!program) return program.error();
  ProbeLaunch launch;
  launch.program = *program;
  launch.launcher = std::move(*launcher);
  if (!arguments.record.empty()) launch.on_line = [&lines](const std::string& line) { lines += line + "\n"; };
  return StepRunner([launch, &lines](const StepJob& job, const RunContext& run) {
    lines.clear();
    return measure_step(launch, job, run);
  });
}

/// Plans one after the other; what was measured until an error is not lost.
int run_engine_plans(const Arguments& arguments, const ResultPtr& result, const std::vector<std::size_t>& sample,
                     const StepChoice& choice, const RunContext& context) {
  EngineRequest request{find_engine(arguments.engine), {}, arguments.model_code, arguments.python, {}};
  auto launcher = launcher_words(arguments.launcher);
  if (!launcher) return report(launcher.error());
  request.launcher = std::move(*launcher);
  std::vector<ValidationReport> reports;
  int code = kDone;
  for (const std::size_t point : sample) {
    auto program = export_text(*find_format(request.engine->format), {{}, result, point}, FormatNames::keys);
    if (program) request.program = std::move(*program);
    auto made = program ? validate_by_engine(request, *result, point, choice, now(), context)
                        : Expected<ValidationReport>(program.error());
    if (!made) {
      code = report(made.error());
      break;
    }
    say(*made);
    if (made->numerics && !made->numerics->holds()) code = kDevice;
    reports.push_back(std::move(*made));
  }
  if (reports.empty()) return code;
  if (reports.size() > 1) say_summary("all plans", reports);
  const int written = write_all(arguments, reports);
  return code == kDone ? written : code;
}

int run_validate(const Arguments& arguments) {
  for (const std::string* path :
       {&arguments.job_out, &arguments.out, &arguments.csv, &arguments.markdown, &arguments.profile})
    if (const int refused = check_output(*path, kMeasuredBytes); refused != kDone) return refused;
  auto choice = choice_of(arguments);
  if (!choice) return report(choice.error());
  const RunContext context = command_context(arguments.threads);
  auto read = read_json_file(arguments.file);
  if (!read) return report(read.error());
  const auto document = one_result(std::move(*read), arguments.method, arguments.file);
  if (!document) return report(document.error());
  const auto points = read_points(*document, arguments.file);
  if (!points) return report(points.error());
  const auto chosen = chosen_point(arguments.point, **points);
  if (!chosen) return report(chosen.error());
  const auto sample = sampled_points(**points, static_cast<std::size_t>(arguments.plans), *chosen);
  const auto result = reopen_result(*document, arguments.file, sample, context);
  if (!result) return report(result.error());
  if (const auto fine = check_profile(arguments.profile, *(*result)->scenario); !fine) return report(fine.error());
  if (!arguments.engine.empty()) return run_engine_plans(arguments, *result, sample, *choice, context);
  const bool elsewhere = !arguments.job_out.empty() || !arguments.from.empty();
  if (elsewhere && (arguments.plans > 1 || arguments.runs > 1 || !arguments.launcher.empty()))
    return report(usage_error("--job-out and --from are about one run of one plan, and start nothing"));
  // CPU ranks carry out every plan of up to eight devices; a GPU is asked for by name.
  if (choice->backend == ProbeBackend::automatic) choice->backend = ProbeBackend::cpu;
  if (!arguments.job_out.empty()) return write_job(arguments, **result, *chosen, *choice);
  std::string lines;
  const auto runner = runner_of(arguments, lines);
  if (!runner) return report(runner.error());

  const HostRoom host = this_host();
  std::vector<ValidatedPlan> validated;
  std::vector<ValidationReport> reports;
  int code = kDone;
  for (const std::size_t point : sample) {
    // The machine that runs it may be another one.
    const HostRoom* room =
        arguments.from.empty() && arguments.launcher.empty() && choice->backend == ProbeBackend::cpu ? &host : nullptr;
    auto plan = validate_point(**result, point, *choice, now(), *runner, context, room);
    if (!plan) {
      // What was measured until then is not lost.
      code = report(plan.error());
      break;
    }
    if (arguments.runs == 1) say(plan->report);
    validated.push_back(std::move(*plan));
  }
  for (int run = 1; run < arguments.runs && code == kDone; ++run)
    for (ValidatedPlan& plan : validated)
      if (auto done = run_again(**result, plan, *choice, *runner, context); !done) {
        code = report(done.error());
        break;
      }
  for (const ValidatedPlan& plan : validated) {
    if (arguments.runs > 1) say(plan.report);
    if (plan.report.numerics && !plan.report.numerics->holds()) code = kDevice;
    reports.push_back(plan.report);
  }
  // What a failed run said is worth keeping most of all.
  if (!arguments.record.empty())
    if (const auto kept = write_file_atomically(arguments.record, lines); !kept) return report(kept.error());
  if (reports.empty()) return code;
  if (arguments.calibrate) {
    if (const int made = calibrate(arguments, *(*result)->scenario, validated, reports); code == kDone) code = made;
  } else if (reports.size() > 1) {
    say_summary("all plans", reports);
  }
  const int written = write_all(arguments, reports);
  return code == kDone ? written : code;
}

}  // namespace

void add_validate_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("validate", "Run a plan's training step here and compare it with its prediction");
  auto a = std::make_shared<Arguments>();
  sub->add_option("result", a->file, "A turnpoint/result@1 file")->required()->type_name("RESULT.json");
  sub->add_option("--method", a->method, "Which result, where the file holds those of several methods");
  sub->add_option("--point", a->point,
                  "Index, turning, min-time or min-memory; default turning, or min-time where nothing turns");
  sub->add_option("--plans", a->plans, "So many plans spread over the frontier, the chosen one among them")
      ->check(CLI::Range(1, kMostPlans))
      ->capture_default_str();
  sub->add_flag("--calibrate", a->calibrate,
                "Predict once more with what the steps showed, each plan from the others; both reports are written");
  sub->add_option("--profile-out", a->profile, "The calibrated hardware profile, for 'search --hardware FILE'");
  sub->add_option("--slice", a->slice, "Only the part of this device [0], its operators one after the other")
      ->expected(0, 1)
      ->default_str("0")
      ->check(CLI::Range(0, 1 << 20));
  sub->add_option("--backend", a->backend,
                  "auto (CPU ranks), cpu, or cuda: a GPU for each rank where there are enough, else one")
      ->capture_default_str();
  sub->add_option("--device", a->device, "Which GPU")->check(CLI::Range(0, 1023));
  sub->add_option("--steps", a->steps, "Timed steps of a plan")->check(CLI::Range(1, 100000))->capture_default_str();
  sub->add_option("--runs", a->runs, "Rounds over the plans; of a plan's runs the one with the shortest step counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  sub->add_option("--warm-up", a->warm_up, "Steps before them; the first finds out when memory can be freed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->add_option("--cpu-kernels", a->kernels, "Kernels of CPU ranks, as the profile's: auto, onednn or own")
      ->check(CLI::IsMember({"auto", "onednn", "own"}))
      ->capture_default_str();
  sub->add_option("--budget", a->budget_s, "Seconds for one plan's timed steps")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  sub->add_option("--slow", a->slow,
                  "RANK:FACTOR: this rank takes so many times as long to compute in the timed steps of a ratio plan")
      ->type_name("RANK:FACTOR")
      ->allow_extra_args(false);  // one at a time: what follows is the result
  sub->add_flag("--no-proof", a->no_proof, "Do not compare the partitioned step with the unpartitioned one first");
  sub->add_option("--launcher", a->launcher,
                  "Starts the probe or an engine on several hosts, 'mpirun -n 4 --hostfile hosts', 'srun', 'torchrun "
                  "--nproc-per-node 8': put in front of its command line");
  sub->add_option("--engine", a->engine,
                  "pytorch or jax: the exported program runs under this engine, not under turnpoint-probe");
  sub->add_option("--model-code", a->model_code,
                  "A function that returns your model, where the result's model is no config.json")
      ->type_name("FILE.py:FUNCTION");
  sub->add_option("--python", a->python, "The engine's Python; default that of 'packaging/engines'");
  sub->add_option("--job-out", a->job_out, "Only write the job, for 'turnpoint-probe --job' elsewhere");
  sub->add_option("--record", a->record, "Keep what the probe said of the last run in this file");
  sub->add_option("--from", a->from, "Read such a recording of the same point instead of running it");
  sub->add_option("--seed", a->seed, "Of weights and data")->capture_default_str();
  sub->add_option("--threads", a->threads, "Threads of the search; 0: all")->check(CLI::Range(0, 1024));
  sub->add_option("--out", a->out, "Report; default standard output. Of several plans a turnpoint/validations@1 list");
  sub->add_option("--csv", a->csv, "The report as a table, too");
  sub->add_option("--markdown", a->markdown, "The report for people, too");
  sub->callback([&command, a] { command.run = [a] { return run_validate(*a); }; });
}

}  // namespace turnpoint::cli
