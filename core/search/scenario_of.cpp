// SPDX-License-Identifier: Apache-2.0
#include "core/search/scenario_of.h"

#include "core/scenario/task_scenario.h"

namespace turnpoint {

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

}  // namespace turnpoint
