// SPDX-License-Identifier: Apache-2.0
// Scenarios and searches for the tests of methods.
#pragma once

#include <QtTest>
#include <algorithm>
#include <cmath>

#include "core/import/source/model_source.h"
#include "core/search/registry.h"
#include "search/scenario_on.h"

namespace turnpoint::test {

inline ModelPtr builtin(const std::string& name, std::int64_t batch) {
  const auto source = open_model("builtin:" + name);
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({batch, 0});
  if (!model) qFatal("%s", model.error().message().c_str());
  return *model;
}

/// By a method as the command line writes it, "manual:tp=2"; a refusal is a usage error.
inline Expected<ResultPtr> run(const std::string& text, const ScenarioPtr& scenario) {
  const auto choice = choose_method(text);
  if (!choice) return choice.error();
  if (auto reason = refusal_of(*choice->method, choice->parameters, *scenario); !reason.empty())
    return usage_error(reason);
  auto searcher = make_searcher(*choice->method, choice->parameters);
  if (!searcher) return searcher.error();
  return (*searcher)->run(scenario, SearchPass::exact, {});
}

inline bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({std::abs(a), std::abs(b), 1e-12}); }

/// Whether every operator's split is one that `ft` searches (resources/manual/costs.md, 1).
inline bool hands_axes_out_in_order(const Model& model, const Plan& plan) {
  return std::all_of(plan.operators.begin(), plan.operators.end(), [&](const PlanOperator& op) {
    const auto all = enumerate_configurations(model, model.operators[op.op], plan.mesh, false);
    return std::find(all.begin(), all.end(), op.split) != all.end();
  });
}

/// Best time of a result's points with at most this much memory.
inline double best_within(const Result& result, std::int64_t memory) {
  double best = INFINITY;
  for (const auto& p : result.points)
    if (p.memory_bytes <= memory) best = std::min(best, p.time_s);
  return best;
}

}  // namespace turnpoint::test
