// SPDX-License-Identifier: Apache-2.0
// A scenario of a model on named hardware, its settings those of the model unless changed.
#pragma once

#include <QtTest>
#include <functional>

#include "core/hardware/cluster.h"
#include "core/scenario/scenario.h"

namespace turnpoint::test {

inline ScenarioPtr scenario_on(ModelPtr model, const std::string& hardware,
                               const std::function<void(Settings&)>& change = {}) {
  auto cluster = open_hardware(hardware);
  if (!cluster) qFatal("%s", cluster.error().message().c_str());
  Settings settings;
  settings.batch = model->batch;
  if (change) change(settings);
  auto scenario = make_scenario(std::move(model), *cluster, hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

}  // namespace turnpoint::test
