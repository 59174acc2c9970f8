// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/told_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/plan_io/escape.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_names.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr std::size_t kMostWeights = 1'000'000;  // ten times those of the largest models there are
constexpr const char* kBounds = "bounds_by_number";
constexpr std::size_t kMostNumbers = 1000, kMostLines = 10'000;  // of micro-batches; of one of them: ten times ours
constexpr double kLeastSlope = 1e-30;                            // seconds a byte
constexpr double kMostReplicas = 1 << 16;                        // as many devices as a scenario may have
constexpr double kMostOfAPart = 1e18;  // of a cost, bytes or s: the sum of all stays a number of bytes

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

json write_weight(const WeightUpdate& one) {
  return {{"weight", valid_utf8(one.weight)},
          {"shards", one.shards},
          {"replicas", one.replicas},
          {"padding", one.padding},
          {"gather_bytes", one.gather_bytes},
          {"whole", write_seconds(one.whole)},
          {"chosen", write_seconds(one.chosen)},
          {"reason", valid_utf8(one.reason)}};
}

std::vector<WeightUpdate> read_weights(const json& object) {
  std::vector<WeightUpdate> weights;
  const auto list = object.find("weights");
  if (list == object.end() || !list->is_array() || list->size() > kMostWeights) return weights;
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

template <class Parts>
void read_told_parts(const json& object, const char* kind, Parts& parts, std::string (*key)(std::size_t)) {
  const auto at = object.find(kind);
  if (at == object.end() || !at->is_object()) return;
  // A bubble of nothing may be a little less, by rounding.
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (const auto part = at->find(key(i));
        part != at->end() && part->is_number() && std::abs(part->template get<double>()) <= kMostOfAPart)
      parts[i] = part->template get<typename Parts::value_type>();
}

std::optional<CostBreakdown> read_told_cost(const json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_object()) return std::nullopt;
  CostBreakdown cost;
  read_told_parts(*at, "memory", cost.memory, memory_key);
  read_told_parts(*at, "compute", cost.compute, compute_key);
  read_told_parts(*at, "network", cost.network, network_key);
  return cost;
}

json write_bound(const NumberBound& bound) {
  json lines = json::array();
  for (const frontier::BoundLine& line : bound.lines)
    lines.push_back({{"time_s", line.time}, {"s_per_byte", line.per_byte}});
  return {{"micro_batches", bound.micro_batches}, {"lines", std::move(lines)}};
}

/// Bounds that its own points lie below are none.
bool holds_for_points(const std::vector<NumberBound>& bounds, const std::vector<ResultPoint>& points) {
  return std::ranges::all_of(points, [&](const ResultPoint& point) {
    const auto lies_above = [&](const frontier::BoundLine& line) {
      return line.time - line.per_byte * static_cast<double>(point.memory_bytes) <= point.time_s * (1 + 1e-6);
    };
    return std::ranges::any_of(bounds,
                               [&](const NumberBound& bound) { return std::ranges::all_of(bound.lines, lies_above); });
  });
}

std::vector<NumberBound> read_bounds(const json& object, const std::vector<ResultPoint>& points) {
  std::vector<NumberBound> bounds;
  const auto list = object.find(kBounds);
  if (list == object.end() || !list->is_array() || list->size() > kMostNumbers) return bounds;
  for (const json& one : *list) {
    const double micro_batches = number(one, "micro_batches", 1 << 30, 0);
    NumberBound bound{static_cast<int>(micro_batches), {}};
    const auto lines = one.find("lines");
    if (bound.micro_batches < 1 || bound.micro_batches != micro_batches) return {};
    if (lines == one.end() || !lines->is_array() || lines->empty() || lines->size() > kMostLines) return {};
    for (const json& line : *lines) {
      const double time = number(line, "time_s", kMostOfAPart, -1), per_byte = number(line, "s_per_byte", 1e9, -1);
      // Steepest first; slopes that no memory and no time has would make others from them infinite.
      const bool falls =
          bound.lines.empty() || (per_byte < bound.lines.back().per_byte && time < bound.lines.back().time);
      if (time < 0 || per_byte < 0 || (per_byte > 0 && per_byte < kLeastSlope) || !falls) return {};
      bound.lines.push_back({time, per_byte});
    }
    const bool again = std::ranges::any_of(
        bounds, [&](const NumberBound& known) { return known.micro_batches == bound.micro_batches; });
    if (again) return {};
    bounds.push_back(std::move(bound));
  }
  return holds_for_points(bounds, points) ? bounds : std::vector<NumberBound>();
}

}  // namespace

void write_told(const Result& result, json& object) {
  for (const std::string& note : result.notes) object["notes"].push_back(valid_utf8(note));
  for (const std::string& said : result.explanations) object["explanations"].push_back(valid_utf8(said));
  for (const WeightUpdate& one : result.weights) object["weights"].push_back(write_weight(one));
  for (const NumberBound& bound : result.bounds) object[kBounds].push_back(write_bound(bound));
  if (result.whole_updates) object["whole_updates"] = write_cost(*result.whole_updates);
}

void read_told(const json& object, Result& result) {
  for (const auto& [key, into] : {std::pair{"notes", &result.notes}, {"explanations", &result.explanations}})
    if (const auto said = object.find(key); said != object.end() && said->is_array())
      for (const json& sentence : *said)
        if (sentence.is_string()) into->push_back(sentence.get<std::string>());
  result.weights = read_weights(object);
  result.bounds = read_bounds(object, result.points);
  result.whole_updates = read_told_cost(object, "whole_updates");
}

}  // namespace turnpoint
