// SPDX-License-Identifier: Apache-2.0
// The placement methods; command line and window list the same registry (core/search/registry.h takes its methods
// over). It knows the methods, no method knows it.
#pragma once

#include <string>
#include <vector>

#include "core/search/placement/placement_method.h"

namespace turnpoint::placement {

const std::vector<PlacementMethod>& placement_methods();
/// Usage error that lists them.
Expected<const PlacementMethod*> find_placement_method(const std::string& name);
/// What places where nobody names a method.
const PlacementMethod& default_placement_method();

}  // namespace turnpoint::placement
