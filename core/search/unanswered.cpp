// SPDX-License-Identifier: Apache-2.0
#include "core/search/unanswered.h"

#include "core/search/registry.h"

namespace turnpoint {

ResultPtr unanswered(std::string_view method, const ScenarioPtr& scenario, const std::string& why, double search_s) {
  const auto colon = method.find(':');
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->method = method.substr(0, colon);
  if (colon != std::string_view::npos) result->method_options = method.substr(colon + 1);
  result->traits = traits_of(result->method, result->method_options);
  if (scenario->tasks) result->clock = Clock::simulated;
  result->search_s = search_s;
  result->notes.push_back(why);
  return result;
}

}  // namespace turnpoint
