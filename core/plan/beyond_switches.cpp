// SPDX-License-Identifier: Apache-2.0
#include "core/plan/beyond_switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.h"

namespace turnpoint {
namespace {

bool asks_for(const Result& result, std::string_view key) {
  for (const auto word : split(result.method_options, ':'))
    if (word.substr(0, word.find('=')) == key) return true;
  return false;
}

bool shards_updates(const Result& result) {
  if (result.method == "fsdp") return true;  // zero=1 as well: each device updates its share
  if (result.method != "manual") return false;
  for (const auto word : split(result.method_options, ':'))
    if (word.starts_with("zero=") && word != "zero=0") return true;
  return false;
}

}  // namespace

std::vector<std::string> beyond_switches(const Result& result) {
  std::vector<std::string> beyond;
  if (!result.scenario) return beyond;
  const Settings& settings = result.scenario->settings;
  if (!settings.update_sharding && shards_updates(result)) beyond.push_back("update-sharding");
  if (!settings.recompute && asks_for(result, "recompute")) beyond.push_back("recompute");
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
