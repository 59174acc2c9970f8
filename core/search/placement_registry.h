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
/// A method with its parameters, as in `place --method simulated-annealing:calls=5000`.
struct PlacementChoice {
  const PlacementMethod* method = nullptr;
  std::string parameters;  ///< what followed the name after a colon
};
/// Usage error: no such method, or parameters that it does not take.
Expected<PlacementChoice> choose_placement_method(const std::string& text);
/// What places where nobody names a method.
const PlacementMethod& default_placement_method();

}  // namespace turnpoint::placement
