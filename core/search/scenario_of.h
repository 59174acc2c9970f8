// SPDX-License-Identifier: Apache-2.0
// From an opened source and hardware to a scenario, models and task graphs alike.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/import/source/model_source.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Which of these somebody chose.
struct GivenSettings {
  bool batch = false, sequence = false, precision = false;
};

/// What the source states in place of what nobody gave, else the defaults (resources/manual/costs.md, 9).
Settings with_stated(const ModelSource& source, Settings settings, const GivenSettings& given);
/// What a scenario of such settings took unasked, each with its reason; none of a task graph, whose file has it all.
std::vector<TakenSetting> taken_settings(const ModelSource& source, const Scenario& scenario,
                                         const GivenSettings& given);
/// The same of a model bound without a scenario.
std::vector<TakenSetting> taken_settings(const ModelSource& source, const Model& bound, Precision precision,
                                         const GivenSettings& given);

/// Opens the hardware, binds the model and cuts the cluster. `hardware` empty: a task graph's own file; a usage error
/// where the source is a model.
Expected<ScenarioPtr> scenario_of(const ModelSource& source, const std::string& hardware, const Settings& settings);
/// The same on hardware that is open already, uncut; a task graph's own file needs none.
Expected<ScenarioPtr> scenario_on(const ModelSource& source, const ClusterPtr& cluster, const std::string& hardware,
                                  const Settings& settings);
/// The scenario with the source, which is its model, bound to another batch (samples). Bad input, of the source: it
/// cannot be bound to that batch. Usage error: a task graph.
Expected<ScenarioPtr> with_batch(const ModelSource& source, const ScenarioPtr& scenario, std::int64_t batch);
/// The same with another sequence (tokens).
Expected<ScenarioPtr> with_sequence(const ModelSource& source, const ScenarioPtr& scenario, std::int64_t sequence);

}  // namespace turnpoint
