// SPDX-License-Identifier: Apache-2.0
#include "core/search/reopen.h"
#include "core/plan_io/placement_json.h"
#include "core/plan_io/plan_json.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "core/base/named_file.h"
#include "core/base/text.h"
#include "core/import/source/model_source.h"
#include "core/import/task_graph.h"
#include "core/plan_io/plan_read.h"
#include "core/plan_io/ratio_json.h"
#include "core/plan_io/told_json.h"
#include "core/scenario/scenario_json.h"
#include "core/scenario/task_scenario.h"
#include "core/search/objectives.h"
#include "core/search/placement/placed.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"

namespace turnpoint {

namespace {

constexpr const char* kWhatToDo =
    "search it again and export from the new result, or put back the file that was searched";

Error changed(std::string what, const std::string& where) {
  Error error = bad_input(std::move(what), where);
  error.hint = kWhatToDo;
  return error;
}

/// What the document says of its model or task graph against what its file holds now: asked before the search is
/// repeated. Older documents do not say all of it.
Expected<void> compare_model(const nlohmann::json& document, const std::string& where, const Scenario& scenario) {
  JsonFields fields(document, where);
  if (!fields.has("model")) return {};
  JsonFields model = fields.object("model");
  struct Count {
    const char *key, *words;
    std::size_t now;
  };
  std::vector<Count> counts;
  if (scenario.tasks)
    counts = {{"tasks", "tasks", scenario.tasks->task_count()}, {"edges", "edges", scenario.tasks->edge_count()}};
  else
    counts = {{"operators", "operators", scenario.model->operators.size()},
              {"parameters", "parameters", std::size_t(scenario.model->parameters)}};
  std::string differs;
  for (const auto& [key, words, now] : counts) {
    const std::int64_t then = model.integer(key, 0, std::int64_t(1) << 62, std::int64_t(now));
    if (std::size_t(then) != now)
      differs += fmt::format("{}{} {} now, not {}", differs.empty() ? "" : " and ", now, words, then);
  }
  if (fields.error()) return *fields.error();
  if (differs.empty()) return {};
  return changed(fmt::format("the {} it was found for, '{}', has changed: it has {}",
                             scenario.tasks ? "task graph" : "model", scenario.model->source, differs),
                 where);
}

// The file's points must be the ones found again, or its plan indices would mean something else.
Expected<void> compare_points(const nlohmann::json& document, const std::string& where, const Result& result) {
  JsonFields fields(document, where);
  std::size_t count = 0;
  std::string differs;
  fields.each("points", [&](JsonFields& point, std::size_t k) {
    ++count;
    const auto memory = point.integer("memory_bytes", 0, std::int64_t(1) << 62);
    const double time = point.number("time_s", 0, 1e30);
    if (!differs.empty() || k >= result.points.size()) return;
    const auto& now = result.points[k];
    if (now.memory_bytes != memory || std::abs(now.time_s - time) > 1e-9 * time)
      differs = fmt::format("point {} is {} and {} now, not {} and {}", k, format_bytes(now.memory_bytes),
                            format_seconds(now.time_s), format_bytes(memory), format_seconds(time));
  });
  if (fields.error()) return *fields.error();
  if (count != result.points.size())
    differs = fmt::format("there are {} points now, not {}", result.points.size(), count);
  if (differs.empty()) return {};
  const Scenario& scenario = *result.scenario;
  const std::string hardware = scenario.hardware.empty() || scenario.hardware == kFileHardware
                                   ? std::string()
                                   : fmt::format(", the hardware '{}'", scenario.hardware);
  return changed(
      fmt::format("its points are not what its scenario gives now: {}; numbers in {} '{}'{} or the program "
                  "have changed",
                  differs, scenario.tasks ? "the task graph" : "the model", scenario.model->source, hardware),
      where);
}

Error not_a_result(const std::string& format, const std::string& where) {
  if (format == "turnpoint/results@1")
    return bad_input("holds the results of several methods, where one is wanted", where);
  return bad_input(fmt::format("is not a turnpoint/result@1 file, as 'turnpoint-cli search --out' writes them{}",
                               format.starts_with("turnpoint/") ? ", but " + format.substr(0, 40) : std::string()),
                   where);
}

/// The scenario that the document names, on the model and hardware of now.
Expected<ScenarioPtr> open_its_scenario(const nlohmann::json& document, const std::string& where) {
  const auto names = read_scenario(document["scenario"], where + ": scenario");
  if (!names) return names.error();
  const auto folder = std::filesystem::path(where).parent_path();
  const auto source = open_model(resolve_name(folder, names->model));
  if (!source) return source.error();
  auto scenario = scenario_of(**source, resolve_name(folder, names->hardware), names->settings);
  if (!scenario) return scenario.error();
  if (auto same = compare_model(document, where, **scenario); !same) return same.error();
  return scenario;
}

Expected<ResultPtr> search_again(const nlohmann::json& document, const std::string& where, const Result& points,
                                 const ScenarioPtr& scenario, const RunContext& context) {
  const auto method = find_method(points.method);
  if (!method) return bad_input(method.error().what, where);
  auto searcher = make_searcher(**method, points.method_options);
  if (!searcher) return bad_input(searcher.error().what, where);
  auto result = (*searcher)->run(scenario, SearchPass::exact, context);
  if (!result) return result.error();
  // One chosen plan: the devices are in the scenario, so what is left to choose is the fastest within the limit.
  if (!points.objective.empty() && points.objective != to_string(Objective::frontier)) {
    auto chosen = std::make_shared<Result>(*fastest_within_limit(*result));
    chosen->objective = points.objective;
    result = ResultPtr(chosen);
  }
  const auto same = compare_points(document, where, **result);
  if (same) return result;
  Error error = same.error();
  if (ends_by_time(points.method, points.method_options))
    error.hint =
        "a search that a limit of time ends finds other plans every time; '--max-plans all' writes all of its own";
  return error;
}

/// The first place of `now` that `file` has otherwise; numbers to 1e-9. What only one of them knows is no difference:
/// other versions of the program write more or less.
std::string first_difference(const nlohmann::json& file, const nlohmann::json& now) {
  if (file.is_number() && now.is_number()) {
    const double a = file.get<double>(), b = now.get<double>();
    return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-15
               ? std::string()
               : fmt::format(": {} now, not {}", now.dump(), file.dump());
  }
  if (file.is_object() && now.is_object()) {
    for (const auto& [key, value] : now.items())
      if (file.contains(key))
        if (const auto differs = first_difference(file[key], value); !differs.empty()) return "." + key + differs;
    return {};
  }
  if (file.is_array() && now.is_array()) {
    if (file.size() != now.size()) return fmt::format(": {} entries now, not {}", now.size(), file.size());
    for (std::size_t i = 0; i < file.size(); ++i)
      if (const auto differs = first_difference(file[i], now[i]); !differs.empty())
        return fmt::format("[{}]{}", i, differs);
    return {};
  }
  return file == now ? std::string() : ": is not what it is now";
}

/// `differs` as first_difference() has it, for a plan.
Error plan_changed(const std::string& differs, const std::string& where, const Scenario& scenario) {
  return changed(
      fmt::format("is not what its scenario gives now: {}; it was edited, or numbers in {} '{}', the hardware "
                  "or the program have changed",
                  differs.substr(1), scenario.tasks ? "the task graph" : "the model", scenario.model->source),
      where);
}

/// The plans of some points, as a file has them.
class FilePlans : public PlanSource {
 public:
  std::map<std::size_t, AnyPlan> plans;
  AnyPlan plan(std::size_t point) const override { return plans.at(point); }
  PlanKind kind(std::size_t point) const override { return kind_of(plans.at(point)); }
};

Expected<PlacementPlanPtr> read_file_placement(const nlohmann::json& plan, const std::string& where,
                                               const Scenario& scenario) {
  auto placement = read_placement(plan.dump(-1, ' ', true), where);
  if (!placement) return placement.error();
  JsonFields fields(plan, where);
  const std::string method = fields.text("method", std::string());
  const auto made_with = read_made_with(fields);
  if (fields.error()) return *fields.error();
  auto placed = search::placed_as(scenario, std::move(*placement), method, made_with, where);
  if (!placed) return placed.error();
  auto made = std::make_shared<PlacementPlan>(**placed);
  made->moved_tasks = static_cast<std::size_t>(fields.integer("moved_tasks", 0, std::int64_t(1) << 40, 0));
  fields.each("stages", [&](JsonFields& stage, std::size_t) {
    made->stages.push_back({stage.text("name"), stage.number("makespan_s", 0, 1e30)});
  });
  if (fields.error()) return *fields.error();
  const auto now = nlohmann::json::parse(write_placement_plan(scenario, *made));
  if (const auto differs = first_difference(plan, now); !differs.empty()) return plan_changed(differs, where, scenario);
  return PlacementPlanPtr(std::move(made));
}

Expected<RatioPlanPtr> read_file_ratio(const nlohmann::json& plan, const std::string& where, const Scenario& scenario) {
  auto made = read_ratio_plan(plan, where, scenario);
  if (!made) return made.error();
  if (const auto differs = first_difference(plan, write_ratio_plan(scenario, *made)); !differs.empty())
    return plan_changed(differs, where, scenario);
  return std::make_shared<const RatioPlan>(std::move(*made));
}

std::string plan_place(const std::string& where, std::size_t point) {
  return fmt::format("{}: plans[{}]", where, point);
}

/// The point that a plan belongs to must be its own.
Expected<void> compare_point(const ResultPoint& point, std::int64_t memory_bytes, double time_s,
                             const std::string& where) {
  if (point.memory_bytes == memory_bytes && std::abs(point.time_s - time_s) <= 1e-9 * std::abs(time_s)) return {};
  return bad_input(fmt::format("costs {} bytes and {} s, its point says {} and {}", memory_bytes, time_s,
                               point.memory_bytes, point.time_s),
                   where);
}

Expected<ResultPtr> with_file_plans(const nlohmann::json& document, const std::string& where, const Result& points,
                                    const ScenarioPtr& scenario, const std::vector<std::size_t>& wanted,
                                    const RunContext& context) {
  auto plans = std::make_shared<FilePlans>();
  ResultPtr again;  // for plans that were left out, and old pipelines
  const auto searched = [&]() -> Expected<ResultPtr> {
    if (!again) {
      auto found = search_again(document, where, points, scenario, context);
      if (!found) return found.error();
      again = *found;
    }
    return again;
  };
  for (const std::size_t k : wanted) {
    if (context.cancelled()) return cancelled_error();
    const nlohmann::json& held = document["plans"][k];
    const std::string place = plan_place(where, k);
    if (held.is_null()) {
      const auto found = searched();
      if (!found) return found.error();
      plans->plans.emplace(k, (*found)->plans->plan(k));
      continue;
    }
    JsonFields fields(held, place);
    if (fields.text("kind", std::string()) == "placement") {
      auto placed = read_file_placement(held, place, *scenario);
      if (!placed) return placed.error();
      const auto most = std::max_element((*placed)->peak_bytes.begin(), (*placed)->peak_bytes.end());
      if (auto same = compare_point(points.points[k], *most, (*placed)->makespan_s, place); !same) return same.error();
      plans->plans.emplace(k, std::move(*placed));
      continue;
    }
    if (scenario->tasks) return bad_input("is no placement, and its scenario has a task graph", place);
    if (fields.text("kind", std::string()) == "ratio") {
      auto plan = read_file_ratio(held, place, *scenario);
      if (!plan) return plan.error();
      if (auto same = compare_point(points.points[k], (*plan)->most_memory(), (*plan)->cost.time_s(), place); !same)
        return same.error();
      plans->plans.emplace(k, std::move(*plan));
      continue;
    }
    if (fields.has("pipeline") && !held["pipeline"].contains("send_s")) {
      // Of before files held the schedule: its method lays it out again in no time.
      const auto found = searched();
      if (!found) return found.error();
      auto plan = std::make_shared<const Plan>((*found)->plans->sharding(k));
      const auto differs = first_difference(held, write_plan(*scenario, *plan));
      if (!differs.empty()) return plan_changed(differs, place, *scenario);
      plans->plans.emplace(k, std::move(plan));
      continue;
    }
    auto plan = read_plan(held, place, *scenario);
    if (!plan) return plan.error();
    if (auto same = compare_point(points.points[k], plan->cost.memory_bytes(), plan->cost.time_s(), place); !same)
      return same.error();
    plans->plans.emplace(k, std::make_shared<const Plan>(std::move(*plan)));
  }
  auto result = std::make_shared<Result>(points);
  result->scenario = scenario;
  result->plans = std::move(plans);
  return ResultPtr(std::move(result));
}

}  // namespace

bool holds_plans(const nlohmann::json& document) {
  const auto found = document.find("plans");
  return document.is_object() && found != document.end() && !found->is_null();
}

std::string missing_file(const nlohmann::json& document, const std::string& where) {
  const auto gone = [&](const char* key) {
    const auto scenario = document.find("scenario");
    if (scenario == document.end() || !scenario->is_object()) return std::string();
    const auto found = scenario->find(key);
    if (found == scenario->end() || !found->is_string()) return std::string();
    const auto path = found->get<std::string>();
    std::error_code ec;
    if (std::filesystem::exists(resolve_name(std::filesystem::path(where).parent_path(), path), ec))
      return std::string();
    if (std::string_view(key) == "model") return path.starts_with("builtin:") ? std::string() : path;
    const bool is_path = path.find('/') != std::string::npos || path.ends_with(".json");
    return is_path ? path : std::string();
  };
  const std::string model = gone("model");
  return model.empty() ? gone("hardware") : model;
}

Expected<ResultPtr> read_points(const nlohmann::json& document, const std::string& where) {
  JsonFields fields(document, where);
  const std::string format = fields.text("format", std::string());
  if (format != "turnpoint/result@1") return not_a_result(format, where);
  auto result = std::make_shared<Result>();
  result->method = fields.text("method");
  if (!fields.has("scenario")) fields.fail("scenario", "is missing");
  if (fields.error()) return *fields.error();
  result->method_options = fields.object("scenario").text("method_options", std::string());
  result->traits = traits_of(result->method, result->method_options);
  result->objective = fields.text("objective", std::string());
  result->clock = fields.text("clock", "additive") == "simulated" ? Clock::simulated : Clock::additive;
  result->exact = fields.flag("exact", false);
  result->search_s = fields.number("search_s", 0, 1e30, 0);
  fields.each("points", [&](JsonFields& point, std::size_t) {
    ResultPoint made;
    made.memory_bytes = point.integer("memory_bytes", 0, std::int64_t(1) << 62);
    made.time_s = point.number("time_s", 0, 1e30);
    made.compute_s = point.number("compute_s", 0, 1e30, 0);
    made.network_s = point.number("network_s", 0, 1e30, 0);
    made.fits = point.flag("fits", false);
    if (point.has("peak_communication_bytes"))
      made.peak_communication_bytes = point.integer("peak_communication_bytes", 0, std::int64_t(1) << 62);
    result->points.push_back(made);
  });
  const auto index = [&](const char* key) -> std::optional<std::size_t> {
    if (!fields.has(key)) return std::nullopt;
    return std::size_t(fields.integer(key, 0, std::max<std::int64_t>(0, std::int64_t(result->points.size()) - 1)));
  };
  result->turning_point = index("turning_point");
  result->near_best = index("near_best");
  if (fields.has("slowest_considered_s")) result->slowest_considered_s = fields.number("slowest_considered_s", 0, 1e30);
  read_told(document, *result);
  if (holds_plans(document) && !fields.error()) {
    const auto& plans = document["plans"];
    if (!plans.is_array() || plans.size() != result->points.size())
      fields.fail("plans", fmt::format("must list one plan, or null, for each of {} points", result->points.size()));
  }
  if (fields.error()) return *fields.error();
  return ResultPtr(std::move(result));
}

Expected<ResultPtr> reopen_result(const nlohmann::json& document, const std::string& where,
                                  const std::vector<std::size_t>& points, const RunContext& context) {
  const auto read = read_points(document, where);
  if (!read) return read.error();
  const auto scenario = open_its_scenario(document, where);
  if (!scenario) return scenario.error();
  if (holds_plans(document)) return with_file_plans(document, where, **read, *scenario, points, context);
  return search_again(document, where, **read, *scenario, context);
}

}  // namespace turnpoint
