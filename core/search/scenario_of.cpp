// SPDX-License-Identifier: Apache-2.0
#include "core/search/scenario_of.h"

#include "core/scenario/task_scenario.h"

namespace turnpoint {

Settings with_stated(const ModelSource& source, Settings settings, const GivenSettings& given) {
  const Settings defaults;
  if (!given.batch) settings.batch = source.chosen_batch() > 0 ? source.chosen_batch() : defaults.batch;
  if (!given.sequence) settings.sequence = defaults.sequence;
  if (!given.precision) settings.precision = source.stated().precision.value_or(defaults.precision);
  return settings;
}

std::vector<TakenSetting> taken_settings(const ModelSource& source, const Scenario& scenario,
                                         const GivenSettings& given) {
  if (scenario.tasks) return {};
  return taken_settings(source, *scenario.model, scenario.settings.precision, given);
}

std::vector<TakenSetting> taken_settings(const ModelSource& source, const Model& bound, Precision precision,
                                         const GivenSettings& given) {
  std::vector<TakenSetting> taken;
  const StatedDefaults stated = source.stated();
  const auto take = [&](const char* key, std::string value, const std::string& reason, bool named = true) {
    taken.push_back({key, std::move(value), reason.empty() ? "the default" : reason, named && !reason.empty()});
  };
  if (!given.precision) take("precision", to_string(precision), stated.precision_reason);
  if (!given.batch) take("batch", std::to_string(bound.batch), stated.batch_reason);
  if (!given.sequence && bound.sequence > 0 && !stated.sequence_reason.empty())
    take("sequence", std::to_string(bound.sequence), stated.sequence_reason, stated.names_sequence);
  return taken;
}

Expected<ScenarioPtr> scenario_of(const ModelSource& source, const std::string& hardware, const Settings& settings) {
  const bool own = source.tasks() && (hardware.empty() || hardware == kFileHardware);
  if (hardware.empty() && !own)
    return usage_error("a model needs hardware: a preset such as v100-16gb-2x8, or a profile file");
  if (hardware == kFileHardware && !own)
    return usage_error("only a task graph can be placed on the devices of its own file", hardware);
  ClusterPtr cluster;
  if (!own) {
    auto opened = open_hardware(hardware);
    if (!opened) return opened.error();
    cluster = *opened;
  }
  return scenario_on(source, cluster, hardware, settings);
}

Expected<ScenarioPtr> scenario_on(const ModelSource& source, const ClusterPtr& cluster, const std::string& hardware,
                                  const Settings& settings) {
  auto model = source.bind({settings.batch, settings.sequence});
  if (!model) return model.error();
  if (source.tasks()) return make_task_scenario(source.tasks(), *model, cluster, hardware, settings);
  if ((*model)->operators.empty()) {
    Error error = bad_input("holds weights and no graph, so that there is nothing to split", source.source());
    error.hint = "open the config.json of the model, or a graph of it";
    return error;
  }
  return make_scenario(*model, cluster, hardware, settings);
}

namespace {

/// As it is, bound again: `taken` is what somebody chose now.
Expected<ScenarioPtr> rebound(const ScenarioPtr& scenario, ModelPtr model, const Settings& settings,
                              std::string_view chosen) {
  const auto made = make_scenario(std::move(model), scenario->cluster, scenario->hardware, settings);
  if (!made) return made.error();
  auto other = std::make_shared<Scenario>(**made);
  other->taken = scenario->taken;
  std::erase_if(other->taken, [&](const TakenSetting& one) { return one.key == chosen; });
  return ScenarioPtr(std::move(other));
}

}  // namespace

Expected<ScenarioPtr> with_batch(const ModelSource& source, const ScenarioPtr& scenario, std::int64_t batch) {
  if (scenario->tasks) return usage_error("is a task graph, which has no batch to choose", source.source());
  const auto model = source.bind({batch, scenario->settings.sequence});
  if (!model) return model.error();
  if ((*model)->batch != batch) return bad_input("has one batch and no other", source.source());
  Settings settings = scenario->settings;
  settings.batch = batch;
  return rebound(scenario, *model, settings, "batch");
}

Expected<ScenarioPtr> with_sequence(const ModelSource& source, const ScenarioPtr& scenario, std::int64_t sequence) {
  if (scenario->tasks) return usage_error("is a task graph, which has no sequence to choose", source.source());
  const auto model = source.bind({scenario->model->batch, sequence});
  if (!model) return model.error();
  if ((*model)->sequence != sequence) return bad_input("has one sequence and no other", source.source());
  Settings settings = scenario->settings;
  settings.sequence = sequence;
  return rebound(scenario, *model, settings, "sequence");
}

}  // namespace turnpoint
