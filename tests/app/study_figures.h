// SPDX-License-Identifier: Apache-2.0
// Figures of the sample studies, taken through the session files themselves: open, bind, search. Shared by the test of
// the studies, which asserts them on the coarse pass (every point of it is a real plan, both ends are exact), and by
// the benchmark, which prints them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/core_backend.h"
#include "app/scenario_builder.h"
#include "app/studies.h"
#include "core/search/objectives.h"
#include "core/search/registry.h"

namespace turnpoint::test {

struct StudyScenario {
  std::string label;  ///< empty: the session's own
  std::string method;
  ScenarioPtr scenario;
};

/// The session's own scenario with its first method, then every search it asks for.
inline Expected<std::vector<StudyScenario>> study_scenarios(const app::Session& session) {
  static const app::CoreBackend backend;
  std::vector<StudyScenario> list;
  const auto add = [&](const std::string& label, const std::string& method,
                       const app::ScenarioRequest& request) -> Expected<void> {
    const auto state = app::build_scenario(backend, request, {});
    if (!state) return state.error();
    list.push_back({label, method, state->scenario});
    return {};
  };
  if (auto own = add({}, session.methods.front(), session.scenario); !own) return own.error();
  for (const auto& search : session.searches)
    if (auto added = add(search.label, search.method, search.scenario); !added) return added.error();
  return list;
}

inline Expected<ResultPtr> search_study(const StudyScenario& study, const std::string& method, SearchPass pass) {
  const auto found = find_method(method);
  if (!found) return found.error();
  if (auto reason = contender(**found).refuses(*study.scenario); !reason.empty()) return usage_error(reason);
  return contender(**found).make()->run(study.scenario, pass, {});
}

inline double gib(std::int64_t bytes) { return static_cast<double>(bytes) / 1073741824.0; }

/// The turning point over all points, whether they fit a device or not: the shape of the curve alone.
inline std::optional<ResultPoint> turning_of_shape(const Result& result) {
  auto points = result.points;
  for (auto& point : points) point.fits = true;
  const auto at = find_turning_point(points);
  return at ? std::optional(points[*at]) : std::nullopt;
}
/// The least memory within 5 % of the best time, the other definition of a turning point
/// (resources/manual/turning-point.md).
inline std::optional<ResultPoint> near_best_of_shape(const Result& result) {
  auto points = result.points;
  for (auto& point : points) point.fits = true;
  const auto at = find_near_best(points);
  return at ? std::optional(points[*at]) : std::nullopt;
}

}  // namespace turnpoint::test
