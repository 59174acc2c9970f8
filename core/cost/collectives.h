// SPDX-License-Identifier: Apache-2.0
// The collectives of a scenario: its cluster's under its factors, rings where it accounts as the papers do.
#pragma once

#include "core/hardware/collective_model.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

inline CollectiveModel collectives_of(const Scenario& scenario) {
  const bool papers = scenario.settings.accounting == Accounting::paper;
  return {*scenario.cluster, scenario.settings.factors,
          papers ? CollectiveModel::Pricing::rings : CollectiveModel::Pricing::library};
}

}  // namespace turnpoint
