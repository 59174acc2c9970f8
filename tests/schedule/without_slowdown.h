// SPDX-License-Identifier: Apache-2.0
// A scenario on whose devices computing and communicating do not slow each other, so that ends are sums of durations.
#pragma once

#include "core/scenario/scenario.h"

namespace turnpoint::test {

inline ScenarioPtr without_slowdown(const ScenarioPtr& scenario) {
  auto cluster = std::make_shared<Cluster>(*scenario->cluster);
  cluster->overlap_slowdown = 1;
  auto same = std::make_shared<Scenario>(*scenario);
  same->cluster = std::move(cluster);
  return same;
}

}  // namespace turnpoint::test
