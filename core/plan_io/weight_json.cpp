// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/weight_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/plan_io/escape.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr std::size_t kMostWeights = 1'000'000;
constexpr double kMostReplicas = 1 << 16;

json write_seconds(const UpdateSeconds& of) {
  return {{"reduce_s", of.reduce}, {"update_s", of.update}, {"gather_s", of.gather}};
}

/// A number from 0 to `most`, else `otherwise`.
double number(const json& object, const char* key, double most, double otherwise) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return otherwise;
  const double value = at->get<double>();
  return value >= 0 && value <= most ? value : otherwise;
}

UpdateSeconds read_seconds(const json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_object()) return {};
  return {number(*at, "reduce_s", 1e9, 0), number(*at, "update_s", 1e9, 0), number(*at, "gather_s", 1e9, 0)};
}

}  // namespace

json write_weight_updates(const std::vector<WeightUpdate>& weights) {
  json list = json::array();
  for (const WeightUpdate& one : weights)
    list.push_back({{"weight", valid_utf8(one.weight)},
                    {"shards", one.shards},
                    {"replicas", one.replicas},
                    {"padding", one.padding},
                    {"gather_bytes", one.gather_bytes},
                    {"whole", write_seconds(one.whole)},
                    {"chosen", write_seconds(one.chosen)},
                    {"reason", valid_utf8(one.reason)}});
  return list;
}

std::vector<WeightUpdate> read_weight_updates(const json& result) {
  std::vector<WeightUpdate> weights;
  const auto list = result.find("weights");
  if (list == result.end() || !list->is_array() || list->size() > kMostWeights) return weights;
  for (const json& one : *list) {
    const auto text = [&](const char* key) {
      const auto at = one.find(key);
      return at != one.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    if (!one.is_object() || text("weight").empty()) continue;
    WeightUpdate made;
    made.weight = text("weight"), made.reason = text("reason");
    made.shards = std::max(1, static_cast<int>(number(one, "shards", kMostReplicas, 1)));
    made.replicas = std::max(1, static_cast<int>(number(one, "replicas", kMostReplicas, 1)));
    made.padding = number(one, "padding", 1e9, 0);
    made.gather_bytes = static_cast<int>(number(one, "gather_bytes", 64, 4));
    made.whole = read_seconds(one, "whole"), made.chosen = read_seconds(one, "chosen");
    weights.push_back(std::move(made));
  }
  return weights;
}

}  // namespace turnpoint
