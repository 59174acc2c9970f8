// SPDX-License-Identifier: Apache-2.0
#include "core/search/reopen.h"

#include <fmt/format.h>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "core/base/text.h"
#include "core/import/model_source.h"
#include "core/scenario/scenario_json.h"
#include "core/scenario/task_scenario.h"
#include "core/search/method.h"
#include "core/search/objectives.h"
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

}  // namespace

Expected<ResultPtr> reopen_result(const nlohmann::json& document, const std::string& where, const RunContext& context) {
  JsonFields fields(document, where);
  const std::string format = fields.text("format", std::string());
  if (format == "turnpoint/results@1")
    return bad_input("holds several results; search with one --method and export that", where);
  if (format != "turnpoint/result@1")
    return bad_input(fmt::format("is not a turnpoint/result@1 file, as 'turnpoint-cli search --out' writes them{}",
                                 format.starts_with("turnpoint/") ? ", but " + format.substr(0, 40) : std::string()),
                     where);
  const std::string name = fields.text("method");
  if (!fields.has("scenario")) fields.fail("scenario", "is missing");
  if (fields.error()) return *fields.error();
  JsonFields scenario_fields(document["scenario"], where + ": scenario");
  const std::string options = scenario_fields.text("method_options", std::string());
  if (scenario_fields.error()) return *scenario_fields.error();
  const auto names = read_scenario(document["scenario"], where + ": scenario");
  if (!names) return names.error();
  const auto method = find_method(name);
  if (!method) return bad_input(method.error().what, where);
  const auto source = open_model(names->model);
  if (!source) return source.error();
  const auto scenario = scenario_of(**source, names->hardware, names->settings);
  if (!scenario) return scenario.error();
  if (auto same = compare_model(document, where, **scenario); !same) return same.error();
  auto searcher = make_searcher(**method, options);
  if (!searcher) return bad_input(searcher.error().what, where);
  auto result = (*searcher)->run(*scenario, SearchPass::exact, context);
  if (!result) return result.error();
  // One chosen plan: the devices are in the scenario, so what is left to choose is the fastest within the limit.
  const std::string wanted = fields.text("objective", std::string());
  if (!wanted.empty() && wanted != to_string(Objective::frontier)) {
    auto chosen = std::make_shared<Result>(*fastest_within_limit(*result));
    chosen->objective = wanted;
    result = ResultPtr(chosen);
  }
  if (auto same = compare_points(document, where, **result); !same) return same.error();
  return result;
}

}  // namespace turnpoint
