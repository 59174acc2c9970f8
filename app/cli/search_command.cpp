// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>

#include "app/cli/answers.h"
#include "app/cli/asked_methods.h"
#include "app/cli/commands.h"
#include "app/cli/scenario_arguments.h"
#include "app/cli/search_limits.h"
#include "app/cli/search_objective.h"
#include "app/cli/written_results.h"
#include "core/base/text.h"
#include "core/import/files/training_settings.h"
#include "core/plan/resemblance.h"
#include "core/schedule/simulated_points.h"
#include "core/search/largest_batch.h"
#include "core/search/registry.h"

namespace turnpoint::cli {

namespace {

constexpr std::size_t kSpreadPlans = 200;  // what a chart can show, and some hundred MB of the largest networks

/// "all", or a number from 1 on.
std::optional<std::size_t> number_of_plans(std::string_view text) {
  if (text == "all") return WrittenPlans::kAll;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && number > 0;
  return whole ? std::optional(number) : std::nullopt;
}

struct SearchArguments {
  ScenarioArguments scenario;
  std::string methods, objective = "frontier", out, settings, gap;
  double time_limit_s = 0;
  int threads = 0;
  bool plans = false, simulate = false, json = false;
  std::string max_plans;  ///< empty: not said

  /// Plans and simulated points are in the document alone: who asks for them wants that.
  bool as_table() const { return !json && !plans && max_plans.empty() && !simulate && shown_to_a_person(out); }
  WrittenPlans written_plans() const {
    return {number_of_plans(max_plans).value_or(plans ? kSpreadPlans : std::size_t(0))};
  }
};

std::size_t shown_without_turning(const Result& result) {
  return result.fastest_that_fits().value_or(result.points.size() - 1);
}

/// Of the point that the line before speaks of: what its plan resembles.
void say_what_it_resembles(const Result& result) {
  if (result.points.empty() || !result.plans) return;
  const AnyPlan plan = result.plans->plan(result.turning_point.value_or(shown_without_turning(result)));
  if (const auto* sharding = std::get_if<PlanPtr>(&plan))
    std::fprintf(stderr, "  %s\n", describe(resemblance_of(**sharding, *result.scenario->model)).c_str());
}

void say(const Result& result) {
  std::string line = fmt::format("{}: {} point{} in {:.2f} s", full_method(result), result.points.size(),
                                 result.points.size() == 1 ? "" : "s", result.search_s);
  if (result.gap && *result.gap > 0) {
    line += fmt::format(", gap {:.2f} %", *result.gap * 100);
    if (const auto turning = result.turning_point ? gap_at(result, *result.turning_point) : std::nullopt)
      line += fmt::format(" at most and {:.2f} % at the turning point", *turning * 100);
  }
  if (result.heuristic_eliminations && *result.heuristic_eliminations > 0)
    line += fmt::format(", not certified ({} heuristic elimination{})", *result.heuristic_eliminations,
                        *result.heuristic_eliminations == 1 ? "" : "s");
  if (result.turning_point) {
    const auto& point = result.points[*result.turning_point];
    line += fmt::format(", turning point {} and {}{}", format_bytes(point.memory_bytes), format_seconds(point.time_s),
                        result.clock == Clock::simulated ? "" : " by plain sums");
  } else if (!result.points.empty()) {
    const auto fastest = result.fastest_that_fits();
    const auto& point = result.points[shown_without_turning(result)];
    line += fmt::format(", {}{} and {}", result.points.size() > 1 && fastest ? "the fastest that fits " : "",
                        format_bytes(point.memory_bytes), format_seconds(point.time_s));
  }
  std::fprintf(stderr, "%s\n", line.c_str());
  say_what_it_resembles(result);
}

int run_search(const SearchArguments& given) {
  SearchArguments arguments = given;
  if (const int refused = check_output(arguments.out); refused != kDone) return refused;
  const auto objective = parse_objective(arguments.objective);
  if (!objective) return report(objective.error());
  SearchLimits limits{.seconds = arguments.time_limit_s};
  if (!arguments.gap.empty()) {
    const auto gap = parse_gap(arguments.gap);
    if (!gap) return report(gap.error());
    limits.gap = *gap;
  }
  std::optional<TrainingSettings> settings;
  if (!arguments.settings.empty()) {
    auto taken = take_settings(arguments.settings, arguments.scenario);
    if (!taken) return report(taken.error());
    settings = std::move(*taken);
  }
  const auto opened = open_with_source(arguments.scenario);
  if (!opened) return report(opened.error());
  const ScenarioPtr* const scenario = &opened->scenario;
  if (*objective == Objective::largest_batch)
    if (const auto can = check_batch_can_change(*opened->source, **scenario); !can) return report(can.error());
  for (const auto& warning : (*scenario)->model->warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  if (const auto note = note_on_added_nodes(arguments.scenario, **scenario); !note.empty())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  for (const auto& note : (*scenario)->cluster->notes) std::fprintf(stderr, "note: hardware: %s\n", note.c_str());
  const bool of_tasks = (*scenario)->tasks != nullptr;
  std::string wanted = arguments.methods.empty() ? default_method(of_tasks).name : arguments.methods;
  if (settings) {
    auto both = with_split(wanted, *settings, **scenario);
    if (!both) return report(both.error());
    wanted = std::move(*both);
  }
  auto chosen = chosen_methods(wanted, **scenario, limits);
  if (!chosen) return report(chosen.error());
  if (chosen->size() == 1 && !chosen->front().refusal.empty())
    return report(usage_error(fmt::format("method {}: {}", chosen->front().name, chosen->front().refusal)));
  // Defaults alone are no news; the result has them all.
  const auto& taken = (*scenario)->taken;
  if (std::any_of(taken.begin(), taken.end(), [](const TakenSetting& one) { return one.stated; }))
    std::fprintf(stderr, "note: taken: %s\n", words_of(taken).c_str());

  RunContext context = command_context(arguments.threads);
  if (limits.seconds > 0 && *objective != Objective::frontier)
    for (const ChosenMethod& one : *chosen)
      if (!knows_time(*one.choice.method))
        return report(
            usage_error(fmt::format("--time-limit is for each search of an objective, and method {} does not end "
                                    "by time",
                                    one.name)));
  if (*objective != Objective::frontier) {
    std::vector<Contender> contenders;
    for (const auto& [name, choice, searcher, refusal] : *chosen) {
      auto one = *objective == Objective::largest_batch ? batch_contender(*choice.method, choice.parameters)
                                                        : contender(*choice.method, choice.parameters);
      if (!one) return report(one.error());
      contenders.push_back(std::move(*one));
    }
    return run_objective(*objective, contenders, *opened, context,
                         {arguments.written_plans(), arguments.simulate, arguments.as_table()}, arguments.out);
  }
  Answers answers(*scenario, *objective, chosen->size());
  for (auto& method : *chosen) {
    if (answers.left_out_by_stop(method.name)) continue;
    if (!method.refusal.empty()) {
      answers.left_out(method.name, method.refusal);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    std::optional<StopAfter> stop;
    if (limits.seconds > 0 && !knows_time(*method.choice.method)) stop.emplace(context, limits.seconds);
    auto result = method.searcher->run(*scenario, SearchPass::exact, stop ? stop->context() : context);
    if (!result) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      if (stop && stop->time_is_over() && result.error().code == ErrorCode::cancelled && !context.cancelled()) {
        answers.out_of_time(method.name, limits.seconds);
        continue;
      }
      if (const auto ended = answers.failed(method.name, result.error(), spent.count())) return *ended;
      continue;
    }
    answers.look_for_stop(context);
    say(**result);
    for (const auto& note : (*result)->notes)
      std::fprintf(stderr, "note: %s: %s\n", full_method(**result).c_str(), note.c_str());
    for (const auto& said : (*result)->explanations)
      std::fprintf(stderr, "%s: %s\n", full_method(**result).c_str(), said.c_str());
    if (arguments.simulate) result = with_simulated_points(*result, context);
    if (!result) return report(result.error());
    answers.keep(*result);
  }
  if (const auto ended = answers.nothing_to_write()) return *ended;
  if (arguments.as_table()) {
    const int shown = show_found(answers.results(), context);
    return shown != kDone ? shown : answers.exit_code((*scenario)->settings.memory_limit > 0);
  }
  if (const auto told = answers.tell_of_peaks(context); !told) return report(told.error());
  const int written =
      write_found(arguments.out, answers.results(), chosen->size() > 1, arguments.written_plans(), context);
  return written != kDone ? written : answers.exit_code((*scenario)->settings.memory_limit > 0);
}

}  // namespace

void add_search_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("search", "Search plans for a model on some hardware");
  auto arguments = std::make_shared<SearchArguments>();
  add_scenario_arguments(*sub, arguments->scenario);
  sub->add_option("--method", arguments->methods,
                  fmt::format("Methods, comma-separated, or all, which leaves out {}: the papers' own algorithms, a "
                              "minute each, run where they are named [{}; {} for a task graph, which placement methods "
                              "alone take]",
                              left_out_of_all(), default_method().name, default_method(true).name));
  sub->add_option(
         "--settings", arguments->settings,
         "Settings of DeepSpeed, Megatron-LM, NeMo, MaxText or torchtitan: their split beside the methods, their "
         "batch, sequence and precision where no option names one")
      ->type_name("FILE");
  sub->add_option("--objective", arguments->objective,
                  "frontier, mini-time, mini-parallelism, profile or largest-batch")
      ->capture_default_str();
  sub->add_option("--gap", arguments->gap,
                  "How much faster a better plan may still be for a search to end: 0.3% or 0.003; 0: whole frontiers. "
                  "Of methods that prove a gap")
      ->type_name("SHARE");
  sub->add_option("--time-limit", arguments->time_limit_s,
                  "Wall time in seconds after which each method ends, with what it has found where it can")
      ->check(CLI::Range(1e-3, 1e6))
      ->type_name("SECONDS");
  sub->add_option("--threads", arguments->threads, "Threads; 0: all")->check(CLI::Range(0, 1024));
  sub->add_flag("--plans", arguments->plans,
                fmt::format("Write plans: of up to {} points, even over the frontier, its ends and turning point among "
                            "them",
                            kSpreadPlans));
  sub->add_option("--max-plans", arguments->max_plans,
                  "Write plans of so many points, or of all: gigabytes where points are many")
      ->check([](const std::string& text) {
        return number_of_plans(text) ? std::string() : fmt::format("'{}' is neither all nor a number from 1 on", text);
      })
      ->type_name("N|all");
  sub->add_flag("--simulate", arguments->simulate,
                "Write simulated_time_s and simulated_memory_bytes of every point; few points always have them");
  sub->add_flag("--json", arguments->json, "Print the document also on a terminal, which shows a table without it");
  sub->add_option("--out", arguments->out, "Result file; default standard output");
  sub->callback([&command, arguments] { command.run = [arguments] { return run_search(*arguments); }; });
}

}  // namespace turnpoint::cli
