// SPDX-License-Identifier: Apache-2.0
// turnpoint/sweep@1, and the same as a table of comma-separated values.
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "core/scenario/scenario_json.h"
#include "core/search/variation.h"

namespace turnpoint {

namespace {

using SweepState = VariationCell::State;

constexpr const char* kSweepFormat = "turnpoint/sweep@1";
constexpr const char* kStates[] = {"fits", "nothing fits", "cannot be", "failed"};
constexpr std::int64_t kMostBytes = std::int64_t(1) << 62, kMostSize = std::int64_t(1) << 31;
constexpr double kLongest = 1e12;  ///< seconds
constexpr std::size_t kMostMethods = 64;

void put_optional(nlohmann::ordered_json& object, const char* key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

const char* per_million_key(const VariationCell& cell) {
  return cell.sequence > 0 ? "price_per_million_tokens" : "price_per_million_samples";
}

nlohmann::ordered_json plan_json(const VariationCell& cell, const VariedPlan& plan) {
  nlohmann::ordered_json object = {{"point", plan.point}, {"time_s", plan.time_s}, {"memory_bytes", plan.memory_bytes}};
  put_optional(object, "simulated_time_s", plan.simulated_time_s);
  if (plan.simulated_memory_bytes) object["simulated_memory_bytes"] = *plan.simulated_memory_bytes;
  put_optional(object, "samples_per_second", cell.samples_per_second(plan.time_s));
  put_optional(object, "tokens_per_second", cell.tokens_per_second(plan.time_s));
  put_optional(object, "price_per_step", cell.price_per_step(plan.time_s));
  put_optional(object, per_million_key(cell), cell.price_per_million(plan.time_s));
  if (!plan.words.empty()) object["words"] = plan.words;
  return object;
}

nlohmann::ordered_json cell_json(const VariationCell& cell) {
  nlohmann::ordered_json object = {{"value", cell.value}, {"method", cell.method}, {"state", to_string(cell.state)}};
  if (!cell.reason.empty()) object["reason"] = cell.reason;
  if (cell.devices > 0) {
    object["batch"] = cell.batch;
    object["sequence"] = cell.sequence;
    object["devices"] = cell.devices;
    object["memory_limit_bytes"] = cell.memory_limit;
    put_optional(object, "price_per_hour", cell.price_per_hour);
  }
  if (cell.state == SweepState::cannot_be) return object;
  object["clock"] = to_string(cell.clock);
  object["exact"] = cell.exact;
  object["gap"] = cell.gap ? nlohmann::ordered_json(*cell.gap) : nlohmann::ordered_json();
  object["plans"] = cell.plans;
  object["search_s"] = cell.search_s;
  if (cell.fastest) object["fastest"] = plan_json(cell, *cell.fastest);
  if (cell.turning) object["turning_point"] = plan_json(cell, *cell.turning);
  if (cell.least_bytes > 0) object["least_bytes"] = cell.least_bytes;
  if (!cell.notes.empty()) object["notes"] = cell.notes;
  return object;
}

VariedPlan read_plan(JsonFields fields) {
  VariedPlan plan;
  plan.point = static_cast<std::size_t>(fields.integer("point", 0, kMostSize));
  plan.time_s = fields.number("time_s", 0, kLongest);
  plan.memory_bytes = fields.integer("memory_bytes", 0, kMostBytes);
  if (fields.has("simulated_time_s")) plan.simulated_time_s = fields.number("simulated_time_s", 0, kLongest);
  if (fields.has("simulated_memory_bytes"))
    plan.simulated_memory_bytes = fields.integer("simulated_memory_bytes", 0, kMostBytes);
  plan.words = fields.text("words", "");
  return plan;
}

SweepState read_state(JsonFields& fields) {
  const std::string text = fields.text("state");
  for (std::size_t i = 0; i < std::size(kStates); ++i)
    if (text == kStates[i]) return static_cast<SweepState>(i);
  fields.fail("state", "is none that a sweep has: '" + text + "'");
  return SweepState::failed;
}

std::vector<std::string> read_sentences(JsonFields& fields, const char* key) {
  std::vector<std::string> sentences;
  const auto found = fields.json().find(key);
  if (found == fields.json().end()) return sentences;
  if (!found->is_array()) return fields.fail(key, "is no list"), sentences;
  for (const auto& one : *found)
    one.is_string() ? sentences.push_back(one) : fields.fail(key, "has something that is no text");
  return sentences;
}

VariationCell read_cell(JsonFields& fields) {
  VariationCell cell;
  cell.value = fields.integer("value", 1, kMostSize);
  cell.method = fields.text("method");
  cell.state = read_state(fields);
  cell.reason = fields.text("reason", "");
  cell.batch = fields.integer("batch", 0, kMostSize, 0);
  cell.sequence = fields.integer("sequence", 0, kMostSize, 0);
  cell.devices = static_cast<int>(fields.integer("devices", 0, 65536, 0));
  cell.memory_limit = fields.integer("memory_limit_bytes", 0, std::numeric_limits<std::int64_t>::max(), 0);
  if (fields.has("price_per_hour")) cell.price_per_hour = fields.number("price_per_hour", 0, 1e6);
  cell.clock = fields.text("clock", to_string(Clock::additive)) == to_string(Clock::simulated) ? Clock::simulated
                                                                                               : Clock::additive;
  cell.exact = fields.flag("exact", false);
  if (fields.has("gap")) cell.gap = fields.number("gap", 0, 1);
  cell.plans = static_cast<std::size_t>(fields.integer("plans", 0, kMostSize, 0));
  cell.search_s = fields.number("search_s", 0, kLongest, 0.0);
  if (fields.has("fastest")) cell.fastest = read_plan(fields.object("fastest"));
  if (fields.has("turning_point")) cell.turning = read_plan(fields.object("turning_point"));
  cell.least_bytes = fields.integer("least_bytes", 0, kMostBytes, 0);
  cell.notes = read_sentences(fields, "notes");
  if (cell.fits() != cell.fastest.has_value())
    fields.fail("fastest", cell.fits() ? "is missing, although a plan fits" : "is there, although no plan fits");
  return cell;
}

void read_axis(JsonFields& fields, VariedAxis& axis) {
  JsonFields over = fields.object("over");
  const std::string key = over.text("quantity");
  const auto quantities = varied_quantities();
  const auto known =
      std::find_if(quantities.begin(), quantities.end(), [&](const auto& one) { return one.key == key; });
  if (known == quantities.end()) return over.fail("quantity", "is none that can be varied: '" + key + "'");
  axis.quantity = known->quantity;
  const auto found = over.json().find("values");
  if (found == over.json().end() || !found->is_array() || found->empty() || found->size() > VariedAxis::kMostValues)
    return over.fail("values", fmt::format("is no list of 1 to {} numbers", VariedAxis::kMostValues));
  for (const auto& value : *found) {
    const std::int64_t least = axis.values.empty() ? 1 : axis.values.back() + 1;
    if (!value.is_number_integer() || value < least || value > kMostSize)
      return over.fail("values", "is no list of rising numbers from 1 on");
    axis.values.push_back(value);
  }
}

std::string csv_text(std::string text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_number(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : std::string(); }

std::string csv_count(std::int64_t value) { return value > 0 ? fmt::format("{}", value) : std::string(); }

std::string csv_plan(const VariationCell& cell, const VariedPlan* plan) {
  if (!plan) return ",,,,,,,,";
  const std::string per_million = csv_number(cell.price_per_million(plan->time_s));
  const bool tokens = cell.sequence > 0;
  return fmt::format("{},{},{},{},{},{},{},{},{}", plan->time_s, csv_number(plan->simulated_time_s), plan->memory_bytes,
                     plan->peak_bytes(), csv_number(cell.samples_per_second(plan->time_s)),
                     csv_number(cell.tokens_per_second(plan->time_s)), csv_number(cell.price_per_step(plan->time_s)),
                     tokens ? per_million : "", tokens ? "" : per_million);
}

/// The cell's scenario, and the answer to it where something was searched.
std::string csv_scenario(const VariationCell& cell) {
  if (cell.devices < 1) return ",,,";
  return fmt::format("{},{},{},{}", cell.devices, csv_count(cell.batch), csv_count(cell.sequence), cell.memory_limit);
}
std::string csv_answer(const VariationCell& cell) {
  if (cell.state == SweepState::cannot_be) return ",,,";
  return fmt::format("{},{},{},{}", to_string(cell.clock), cell.exact, cell.plans, cell.search_s);
}

}  // namespace

const char* to_string(VariationCell::State state) { return kStates[static_cast<std::size_t>(state)]; }

std::string write_variation(const Variation& variation) {
  const VariedQuantity& quantity = quantity_of(variation.axis.quantity);
  nlohmann::ordered_json object = {{"format", kSweepFormat},
                                   {"model", variation.model},
                                   {"hardware", variation.hardware},
                                   {"scenario", nlohmann::ordered_json::parse(variation.scenario)}};
  object["over"] = {{"quantity", quantity.key}, {"unit", quantity.unit}, {"values", variation.axis.values}};
  if (variation.own > 0) object["over"]["own"] = variation.own;
  object["methods"] = variation.methods;
  object["search_s"] = variation.search_s;
  object["complete"] = variation.complete();
  object["cells"] = nlohmann::ordered_json::array();
  for (const VariationCell& cell : variation.cells) object["cells"].push_back(cell_json(cell));
  return object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Expected<Variation> read_variation(std::string_view text, const std::string& where) {
  const auto json = parse_json(text, where);
  if (!json) return json.error();
  JsonFields fields(*json, where);
  if (fields.text("format") != kSweepFormat) fields.fail("format", std::string("is not ") + kSweepFormat);
  if (fields.error()) return *fields.error();
  Variation variation;
  variation.model = fields.text("model", "");
  variation.hardware = fields.text("hardware", "");
  if (!fields.object("scenario").json().is_object()) fields.fail("scenario", "is no object");
  read_axis(fields, variation.axis);
  variation.own = fields.object("over").integer("own", 0, kMostSize, 0);
  variation.methods = read_sentences(fields, "methods");
  if (variation.methods.empty() || variation.methods.size() > kMostMethods)
    fields.fail("methods", fmt::format("is no list of 1 to {} methods", kMostMethods));
  variation.search_s = fields.number("search_s", 0, kLongest, 0.0);
  if (fields.error()) return *fields.error();
  const auto names = read_scenario((*json)["scenario"], where + ": scenario");
  if (!names) return names.error();
  variation.scenario = (*json)["scenario"].dump();
  fields.each("cells", [&](JsonFields& one, std::size_t) {
    VariationCell cell = read_cell(one);
    const auto& values = variation.axis.values;
    if (std::find(values.begin(), values.end(), cell.value) == values.end())
      return one.fail("value", fmt::format("is none of the sweep's: {}", cell.value));
    if (std::find(variation.methods.begin(), variation.methods.end(), cell.method) == variation.methods.end())
      return one.fail("method", "is none of the sweep's: '" + cell.method + "'");
    if (variation.find(cell.value, cell.method)) return one.fail("value", "has an answer of this method already");
    variation.put(std::move(cell));
  });
  if (fields.error()) return *fields.error();
  return variation;
}

std::string variation_csv(const Variation& variation) {
  std::string text = "quantity,value,method,state,devices,batch,sequence,memory_limit_bytes,clock,exact,plans,search_s";
  for (const char* which : {"", "turning_point_"})
    for (const char* column :
         {"time_s", "simulated_time_s", "memory_bytes", "peak_bytes", "samples_per_second", "tokens_per_second",
          "price_per_step", "price_per_million_tokens", "price_per_million_samples"})
      text += fmt::format(",{}{}", which, column);
  text += ",least_bytes,plan,reason\n";
  const char* quantity = quantity_of(variation.axis.quantity).key;
  for (const VariationCell& cell : variation.cells)
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", quantity, cell.value, csv_text(cell.method),
                        to_string(cell.state), csv_scenario(cell), csv_answer(cell),
                        csv_plan(cell, cell.fastest ? &*cell.fastest : nullptr),
                        csv_plan(cell, cell.turning ? &*cell.turning : nullptr), csv_count(cell.least_bytes),
                        csv_text(cell.fastest ? cell.fastest->words : std::string()), csv_text(cell.reason));
  return text;
}

}  // namespace turnpoint
