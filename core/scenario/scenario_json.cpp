// SPDX-License-Identifier: Apache-2.0
#include "core/scenario/scenario_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"

namespace turnpoint {

namespace {

struct FactorKey {
  const char* key;
  double WhatIf::*field;
};
constexpr FactorKey kFactors[] = {{"intra_bandwidth", &WhatIf::intra_bandwidth},
                                  {"inter_bandwidth", &WhatIf::inter_bandwidth},
                                  {"latency", &WhatIf::latency},
                                  {"device_memory", &WhatIf::device_memory},
                                  {"device_speed", &WhatIf::device_speed}};

// Choices are stored by their command line word, under their key with _ for -.
std::string option_of(std::string_view key) {
  std::string option(key);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

/// A whole number within its record's bounds.
void read_count(JsonFields& fields, Settings& settings, std::string_view key) {
  const std::string option = option_of(key);
  for (const auto& record : scenario_options())
    if (record.key == option)
      set_option(settings, option,
                 double(fields.integer(key, std::int64_t(record.minimum), std::int64_t(record.maximum),
                                       std::int64_t(record.default_value))));
}

void read_choice(JsonFields& fields, Settings& settings, std::string_view key) {
  const std::string option = option_of(key);
  for (const auto& record : scenario_options()) {
    if (record.key != option || !fields.has(key)) continue;
    const auto value = parse_option(record, fields.text(key, std::string()));
    if (value)
      set_option(settings, option, *value);
    else
      fields.fail(key, value.error().what);
  }
}

std::string choice(const Settings& settings, std::string_view key) {
  for (const auto& record : scenario_options())
    if (record.key == key) return format_option(record, get_option(settings, key));
  return {};
}

}  // namespace

nlohmann::json write_taken(const std::vector<TakenSetting>& taken) {
  nlohmann::json list = nlohmann::json::array();
  for (const TakenSetting& one : taken)
    list.push_back({{"setting", one.key}, {"value", one.value}, {"reason", one.reason}});
  return list;
}

nlohmann::json write_scenario(const Scenario& scenario) {
  const Settings& settings = scenario.settings;
  nlohmann::json object = {
      {"model", scenario.model->source},
      {"batch", scenario.model->batch},
      {"sequence", scenario.model->sequence},
      {"hardware", scenario.hardware},
      {"devices", scenario.cluster->devices()},
      {"precision", choice(settings, "precision")},
      {"gradients", choice(settings, "gradients")},
      {"attention", choice(settings, "attention")},
      {"loss", choice(settings, "loss")},
      {"kernels", choice(settings, "kernels")},
      {"optimizer", choice(settings, "optimizer")},
      {"optimizer_state", choice(settings, "optimizer-state")},
      {"gathers", choice(settings, "gathers")},
      {"checkpoint_every", settings.checkpoint_every},
      {"summary_every", settings.summary_every},
      {"evaluation_every", settings.evaluation_every},
      {"accounting", choice(settings, "accounting")},
      {"collectives", choice(settings, "collectives")},
      {"bucket_bytes", settings.bucket_bytes},
      {"switches",
       {{"recompute", settings.recompute},
        {"update_sharding", settings.update_sharding},
        {"offload", settings.offload},
        {"split_windows", settings.split_windows},
        {"split_loss", settings.split_loss}}},
      {"seed", settings.seed},
  };
  for (const auto& factor : kFactors) object["factors"][factor.key] = settings.factors.*factor.field;
  if (!scenario.taken.empty()) object["taken"] = write_taken(scenario.taken);
  if (settings.memory_limit > 0) object["memory_limit_bytes"] = settings.memory_limit;
  if (settings.reserve_bytes > 0) object["reserve_bytes"] = settings.reserve_bytes;
  if (const std::int64_t reserved = scenario.reserved_bytes(); reserved > 0) object["reserved_bytes"] = reserved;
  if (settings.price_per_hour > 0) object["price_per_hour"] = settings.price_per_hour;
  return object;
}

Expected<ScenarioNames> read_scenario(const nlohmann::json& object, const std::string& where) {
  JsonFields fields(object, where);
  ScenarioNames names;
  Settings& settings = names.settings;
  names.model = fields.text("model");
  names.hardware = fields.text("hardware");
  settings.batch = fields.integer("batch", 1, 1 << 24, settings.batch);
  settings.sequence = fields.integer("sequence", 0, 1 << 24, 0);
  settings.devices = static_cast<int>(fields.integer("devices", 0, 65536, 0));
  // Files from before libraries, fused attention, losses in fp32 or split by words were known have none of these.
  settings.collectives = Collectives::rings;
  settings.attention = Attention::unfused;
  settings.loss = LossPrecision::as_activations;
  settings.split_loss = false;
  for (const char* key : {"precision", "gradients", "attention", "loss", "kernels", "optimizer", "optimizer_state",
                          "gathers", "accounting", "collectives"})
    read_choice(fields, settings, key);
  for (const char* key : {"checkpoint_every", "summary_every", "evaluation_every"}) read_count(fields, settings, key);
  settings.bucket_bytes = fields.integer("bucket_bytes", 0, std::int64_t(1) << 52, 0);
  settings.seed = static_cast<std::uint64_t>(fields.integer("seed", 0, std::int64_t(1) << 53, 1));
  settings.memory_limit = fields.integer("memory_limit_bytes", 0, std::int64_t(1) << 52, 0);
  settings.reserve_bytes = fields.integer("reserve_bytes", 0, std::int64_t(1) << 52, 0);
  settings.price_per_hour = fields.number("price_per_hour", 0, 1e6, 0.0);
  if (fields.has("factors")) {
    JsonFields factors = fields.object("factors");
    for (const auto& factor : kFactors) settings.factors.*factor.field = factors.number(factor.key, 1e-3, 1e3, 1.0);
  }
  if (fields.has("switches")) {
    JsonFields switches = fields.object("switches");
    settings.split_windows = switches.flag("split_windows", false);
    settings.split_loss = switches.flag("split_loss", false);
    settings.recompute = switches.flag("recompute", true);
    settings.update_sharding = switches.flag("update_sharding", true);
    settings.offload = switches.flag("offload", true);
  }
  if (fields.error()) return *fields.error();
  return names;
}

}  // namespace turnpoint
