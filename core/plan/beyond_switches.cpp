// SPDX-License-Identifier: Apache-2.0
#include "core/plan/beyond_switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace turnpoint {

std::vector<std::string> beyond_switches(const Result& result) {
  std::vector<std::string> beyond;
  if (!result.scenario) return beyond;
  const Settings& settings = result.scenario->settings;
  if (!settings.update_sharding && result.traits.shards_updates) beyond.push_back("update-sharding");
  if (!settings.recompute && result.traits.recomputes) beyond.push_back("recompute");
  return beyond;
}

std::string beyond_switches_note(const Result& result) {
  std::vector<std::string> acts;
  for (const std::string& name : beyond_switches(result))
    acts.push_back(name == "recompute" ? "computes activations again" : "shards the weight update");
  if (acts.empty()) return {};
  return fmt::format("{}, which this scenario switches off: beyond what the frontier may do, so it may lie below it",
                     fmt::join(acts, " and "));
}

}  // namespace turnpoint
