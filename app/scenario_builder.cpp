// SPDX-License-Identifier: Apache-2.0
#include "app/scenario_builder.h"

#include "app/content_digest.h"
#include "core/scenario/task_scenario.h"
#include "core/search/scenario_of.h"

namespace turnpoint::app {

namespace {

std::string hardware_for(const ScenarioRequest& request, bool tasks) {
  const bool none = request.hardware.empty() || request.hardware == kFileHardware;
  if (tasks) return none || request.model_chooses_hardware ? kFileHardware : request.hardware;
  return none ? request.usual_hardware : request.hardware;
}

}  // namespace

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
  const TaskGraphPtr tasks = next.source->tasks();
  Settings settings = with_stated(*next.source, request.settings, request.given);
  next.hardware = hardware_for(request, tasks != nullptr);
  if (next.hardware != request.hardware && !request.hardware.empty()) {
    // Counts and limits were those of other devices.
    settings.devices = 0;
    settings.memory_limit = 0;
  }
  const bool own = tasks && next.hardware == kFileHardware;
  if (before.cluster && before.hardware == next.hardware && !own && !request.read_hardware_again) {
    next.cluster = before.cluster;
  } else {
    auto cluster = own ? cluster_of_file(*tasks, 0) : backend.open_hardware(next.hardware);
    if (!cluster) return cluster.error();
    next.cluster = *cluster;
  }
  auto made = scenario_on(*next.source, next.cluster, next.hardware, settings);
  if (!made) return made.error();
  auto scenario = std::make_shared<Scenario>(**made);
  scenario->taken = taken_settings(*next.source, *scenario, request.given);
  next.scenario = std::move(scenario);
  next.content = content_digest(*next.scenario);
  const bool same = next.source == before.source && next.cluster == before.cluster && !before.unbound.empty();
  next.unbound = same ? before.unbound : unbound_digest(*next.source, *next.cluster);
  return next;
}

ScenarioState with_settings(const ScenarioState& state, const Settings& settings) {
  ScenarioState next = state;
  auto scenario = std::make_shared<Scenario>(*state.scenario);
  if (settings.precision != scenario->settings.precision)
    std::erase_if(scenario->taken, [](const TakenSetting& taken) { return taken.key == "precision"; });
  scenario->settings = settings;
  next.scenario = std::move(scenario);
  return next;
}

GivenSettings given_in(const ScenarioState& state) {
  GivenSettings given = {true, true, true};
  if (!state.scenario) return given;
  for (const TakenSetting& taken : state.scenario->taken) {
    if (taken.key == "batch") given.batch = false;
    if (taken.key == "sequence") given.sequence = false;
    if (taken.key == "precision") given.precision = false;
  }
  return given;
}

bool needs_build(const Settings& from, const Settings& to) {
  return from.batch != to.batch || from.sequence != to.sequence || from.devices != to.devices;
}

}  // namespace turnpoint::app
