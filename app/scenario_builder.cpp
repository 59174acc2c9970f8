// SPDX-License-Identifier: Apache-2.0
#include "app/scenario_builder.h"

namespace turnpoint::app {

Expected<ScenarioState> build_scenario(const SearchBackend& backend, const ScenarioRequest& request,
                                       const ScenarioState& before) {
  ScenarioState next;
  next.model = request.model;
  next.hardware = request.hardware;
  if (before.source && before.model == request.model) {
    next.source = before.source;
  } else {
    auto source = backend.open_model(request.model);
    if (!source) return source.error();
    next.source = *source;
  }
  if (before.cluster && before.hardware == request.hardware) {
    next.cluster = before.cluster;
  } else {
    auto cluster = backend.open_hardware(request.hardware);
    if (!cluster) return cluster.error();
    next.cluster = *cluster;
  }
  auto scenario = std::make_shared<Scenario>();
  scenario->settings = request.settings;
  if (request.model_chooses_batch && next.source->chosen_batch() > 0)
    scenario->settings.batch = next.source->chosen_batch();
  scenario->hardware = request.hardware;
  scenario->cluster = next.cluster;
  if (request.settings.devices > 0) {
    auto cut = backend.with_devices(next.cluster, request.settings.devices);
    if (!cut) return cut.error();
    scenario->cluster = *cut;
  }
  auto model = next.source->bind({scenario->settings.batch, scenario->settings.sequence});
  if (!model) return model.error();
  scenario->model = *model;
  next.scenario = std::move(scenario);
  return next;
}

ScenarioState with_settings(const ScenarioState& state, const Settings& settings) {
  ScenarioState next = state;
  auto scenario = std::make_shared<Scenario>(*state.scenario);
  scenario->settings = settings;
  next.scenario = std::move(scenario);
  return next;
}

bool needs_build(const Settings& from, const Settings& to) {
  return from.batch != to.batch || from.sequence != to.sequence || from.devices != to.devices;
}

}  // namespace turnpoint::app
