// SPDX-License-Identifier: Apache-2.0
#include "core/search/reopen.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "core/import/model_source.h"
#include "core/scenario/scenario_json.h"
#include "core/search/method.h"
#include "core/search/objectives.h"
#include "core/search/scenario_of.h"

namespace turnpoint {

namespace {

// The file's points must be the ones found again, or its plan indices would mean something else.
Expected<void> compare_points(const nlohmann::json& document, const std::string& where, const Result& result) {
  JsonFields fields(document, where);
  std::size_t count = 0;
  bool equal = true;
  fields.each("points", [&](JsonFields& point, std::size_t k) {
    ++count;
    const auto memory = point.integer("memory_bytes", 0, std::int64_t(1) << 62);
    const double time = point.number("time_s", 0, 1e30);
    equal = equal && k < result.points.size() && result.points[k].memory_bytes == memory &&
            std::abs(result.points[k].time_s - time) <= 1e-9 * time;
  });
  if (fields.error()) return *fields.error();
  if (!equal || count != result.points.size())
    return bad_input(
        "its points are not what its scenario gives now: the model, the hardware file or the program has changed",
        where);
  return {};
}

}  // namespace

Expected<ResultPtr> reopen_result(const nlohmann::json& document, const std::string& where, const RunContext& context) {
  JsonFields fields(document, where);
  const std::string format = fields.text("format", std::string());
  if (format == "turnpoint/results@1")
    return bad_input("holds several results; search with one --method and export that", where);
  if (format != "turnpoint/result@1") return bad_input("is not a turnpoint/result@1 file", where);
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
