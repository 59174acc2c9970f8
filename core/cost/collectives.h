// SPDX-License-Identifier: Apache-2.0
// The collectives of a scenario: those of its cluster under its factors.
#pragma once

#include "core/hardware/collective_model.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

inline CollectiveModel collectives_of(const Scenario& scenario) {
  return {*scenario.cluster, scenario.settings.factors,
          scenario.by_library() ? CollectiveModel::Pricing::library : CollectiveModel::Pricing::rings};
}

}  // namespace turnpoint
