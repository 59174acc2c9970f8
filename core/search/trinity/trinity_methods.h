// SPDX-License-Identifier: Apache-2.0
// Placement learnt by a policy (resources/manual/mathematics.md, 3): Trinity, and the hierarchical model that it came
// from, on the same networks and the same simulator.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/base/options.h"
#include "core/search/placement/placement_method.h"

namespace turnpoint::trinity {

/// The methods that learning may begin with. The registry hands it over; a call while the registry is being made is
/// not allowed.
using KnownMethods = const std::vector<placement::PlacementMethod>& (*)();

placement::PlacementMethod trinity_method(KnownMethods known);
placement::PlacementMethod hierarchical_method(KnownMethods known);

using Run = std::function<Expected<SimulatedPlacement>(const TaskGraph&, const placement::PlacementRequest&,
                                                       const RunContext&)>;
/// What runs for parameters such as "from=scratch:calls=2000", "" for none. Usage error: no such parameter or value,
/// a budget or tolerance of zero, an unknown method to begin with.
Expected<Run> trinity_run(KnownMethods known, std::string_view parameters);
Expected<Run> hierarchical_run(KnownMethods known, std::string_view parameters);
const std::vector<OptionRecord>& trinity_options();
const std::vector<OptionRecord>& hierarchical_options();  ///< of these the ones that mean something to it

}  // namespace turnpoint::trinity
