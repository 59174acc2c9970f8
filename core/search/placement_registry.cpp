// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement_registry.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/search/annealing/annealing_methods.h"
#include "core/search/pardnn/pardnn.h"
#include "core/search/placement/partitioners.h"
#include "core/search/placement/simple_methods.h"
#include "core/search/trinity/trinity_methods.h"

namespace turnpoint::placement {

const std::vector<PlacementMethod>& placement_methods() {
  static const std::vector<PlacementMethod> all = {
      pardnn::pardnn_method(),
      pardnn::published_method(),
      heft_method(),
      pipedream_method(),
      layered_expert_method(),
      metis_method(),
      scotch_method(),
      round_robin_method(),
      single_device_method(),
      annealing::simulated_annealing_method(),
      annealing::random_search_method(),
      trinity::trinity_method(&placement_methods),
      trinity::hierarchical_method(&placement_methods),
  };
  return all;
}

Expected<const PlacementMethod*> find_placement_method(const std::string& name) {
  std::string known;
  for (const PlacementMethod& method : placement_methods()) {
    if (method.name == name) return &method;
    known += (known.empty() ? "" : ", ") + method.name;
  }
  return usage_error(fmt::format("there is no placement method '{}'; there are {}", name, known));
}

Expected<PlacementChoice> choose_placement_method(const std::string& text) {
  const auto colon = text.find(':');
  const auto method = find_placement_method(text.substr(0, colon));
  if (!method) return method.error();
  PlacementChoice choice{*method, colon == std::string::npos ? std::string() : text.substr(colon + 1)};
  if (const auto run = run_of(**method, choice.parameters); !run) return run.error();
  return choice;
}

const PlacementMethod& default_placement_method() {
  return *std::find_if(placement_methods().begin(), placement_methods().end(),
                       [](const PlacementMethod& method) { return method.default_method; });
}

}  // namespace turnpoint::placement
