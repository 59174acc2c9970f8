// SPDX-License-Identifier: Apache-2.0
#include "core/validation/validation_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "core/plan_io/escape.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr double kMost = 1e30;  ///< seconds or bytes: more is nonsense
constexpr int kMostRanks = 1 << 20;
constexpr std::int64_t kMostCount = std::int64_t(1) << 53;

json write_value(const ComparedValue& value) {
  const bool there = value.measured.has_value();
  return {{"name", valid_utf8(value.name)},
          {"predicted", value.predicted},
          {"measured", there ? json(*value.measured) : json()},
          {"q1", there ? json(value.q1) : json()},
          {"q3", there ? json(value.q3) : json()},
          {"source", to_string(value.source)}};
}

json write_values(const std::vector<ComparedValue>& values) {
  json array = json::array();
  for (const auto& value : values) array.push_back(write_value(value));
  return array;
}

/// `otherwise`: the name where the file gives none.
ComparedValue read_value(JsonFields& fields, const char* otherwise) {
  ComparedValue value;
  value.name = fields.text("name", std::string(otherwise));
  value.predicted = fields.number("predicted", 0, kMost);
  if (fields.has("measured")) value.measured = fields.number("measured", 0, kMost);
  const char* usual = to_string(value.measured ? ValueSource::measured : ValueSource::modelled);
  const std::string source = fields.text("source", std::string(usual));
  if (source != to_string(ValueSource::measured) && source != to_string(ValueSource::modelled))
    fields.fail("source", fmt::format("must be measured or modelled, not '{}'", source));
  else if (source != usual)
    fields.fail("source", value.measured ? "is modelled, but there is a measured value"
                                         : "is measured, but there is no measured value");
  if (!value.measured) return value;
  value.source = ValueSource::measured;
  value.q1 = fields.number("q1", 0, kMost, *value.measured);
  value.q3 = fields.number("q3", 0, kMost, *value.measured);
  return value;
}

std::vector<ComparedValue> read_values(JsonFields& fields, const char* key) {
  std::vector<ComparedValue> values;
  if (!fields.has(key)) fields.fail(key, "is missing");
  fields.each(key, [&](JsonFields& item, std::size_t) {
    values.push_back(read_value(item, ""));
    if (!item.has("name")) item.fail("name", "is missing");
  });
  return values;
}

ComparedValue read_one(JsonFields& fields, const char* key, const char* name, bool required) {
  ComparedValue none;
  none.name = name;
  if (!fields.has(key)) {
    if (required) fields.fail(key, "is missing");
    return none;
  }
  JsonFields item = fields.object(key);
  return read_value(item, name);
}

/// Other programs may describe hardware and plan by an object; its name is what a report shows.
std::string read_name(JsonFields& fields, const char* key) {
  if (!fields.has(key)) return fields.fail(key, "is missing"), std::string();
  if (!fields.json()[key].is_object()) return fields.text(key);
  return fields.object(key).text("name", std::string());
}

json write_exchange(const ComparedExchange& exchange) {
  return {{"kind", valid_utf8(exchange.kind)},
          {"ranks", exchange.ranks},
          {"count", {{"predicted", exchange.predicted_count}, {"measured", exchange.measured_count}}},
          {"bytes", {{"predicted", exchange.predicted_bytes}, {"measured", exchange.measured_bytes}}}};
}

ComparedExchange read_exchange(JsonFields& fields) {
  ComparedExchange exchange;
  exchange.kind = fields.text("kind");
  JsonFields count = fields.object("count"), bytes = fields.object("bytes");
  exchange.predicted_count = count.integer("predicted", 0, kMostCount);
  exchange.measured_count = count.integer("measured", 0, kMostCount);
  exchange.predicted_bytes = bytes.number("predicted", 0, kMost);
  exchange.measured_bytes = bytes.number("measured", 0, kMost);
  const json& ranks = fields.json().contains("ranks") ? fields.json()["ranks"] : json();
  if (!ranks.is_array()) fields.fail("ranks", "must be a list of ranks");
  for (const json& rank : ranks)
    if (rank.is_number_integer() && rank >= 0 && rank < kMostRanks)
      exchange.ranks.push_back(rank.get<int>());
    else
      fields.fail("ranks", "must be a list of ranks");
  return exchange;
}

ValidationReport read_report(JsonFields& fields) {
  ValidationReport report;
  const std::string format = fields.text("format");
  if (format != "turnpoint/validation@1") fields.fail("format", "is not turnpoint/validation@1");
  report.model = fields.text("model", std::string());
  report.hardware = read_name(fields, "hardware");
  report.plan = read_name(fields, "plan");
  report.engine = fields.text("engine", std::string());
  report.backend = fields.text("backend", std::string());
  report.mode = fields.text("mode", std::string());
  report.ranks = static_cast<int>(fields.integer("ranks", 1, kMostRanks, 1));
  report.cores = static_cast<int>(fields.integer("cores", 0, kMostRanks, 0));
  report.date = fields.text("date", std::string());
  report.calibrated = fields.flag("calibrated", false);
  report.step = read_one(fields, "step", "step", true);
  report.execution = read_one(fields, "execution", "execution", false);
  report.network = read_one(fields, "network", "network", false);
  const std::string kind = fields.text("kind", std::string("sharding"));
  report.placement = kind == "placement";
  report.ratio = kind == "ratio";
  fields.each("exchanges", [&](JsonFields& item, std::size_t) { report.exchanges.push_back(read_exchange(item)); });
  if (fields.has("losses")) {
    const json& losses = fields.json()["losses"];
    if (!losses.is_array()) fields.fail("losses", "must be a list of numbers");
    for (const json& loss : losses)
      if (loss.is_number() || loss.is_null())
        report.losses.push_back(loss.is_null() ? std::nan("") : loss.get<double>());
      else
        fields.fail("losses", "must be a list of numbers");
  }
  if (fields.has("devices")) report.devices = read_values(fields, "devices");
  if (fields.has("phases")) report.phases = read_values(fields, "phases");
  report.operators = read_values(fields, "operators");
  report.collectives = read_values(fields, "collectives");
  report.memory = read_values(fields, "memory");
  report.bytes_sent = read_one(fields, "bytes_sent", "bytes sent", false);
  if (fields.has("numerics")) {
    JsonFields item = fields.object("numerics");
    ReportNumerics numerics;
    // An error that is no number is written as null: it is beyond any tolerance.
    numerics.loss_error = item.number("loss_error", 0, kMost, kMost);
    numerics.gradient_error = item.number("gradient_error", 0, kMost, kMost);
    numerics.tolerance = item.number("tolerance", 0, kMost);
    numerics.precision = item.text("precision", std::string());
    numerics.where = item.text("where", std::string());
    if (item.has("rounding")) {
      JsonFields of = item.object("rounding");
      const auto number = [&](const char* key) { return of.number(key, 0, kMost); };
      numerics.rounding = {of.text("precision"),     number("loss_error"),         number("gradient_error"),
                           number("loss_tolerance"), number("gradient_tolerance"), of.text("where", std::string())};
    }
    report.numerics = std::move(numerics);
  }
  if (fields.has("notes")) {
    const json& notes = fields.json()["notes"];
    if (!notes.is_array()) fields.fail("notes", "must be a list of texts");
    for (const auto& note : notes) {
      if (note.is_string())
        report.notes.push_back(note.get<std::string>());
      else
        fields.fail("notes", "must be a list of texts");
    }
  }
  return report;
}

json write_summary(const ErrorSummary& summary) {
  json rows = json::array();
  for (const auto& row : summary.rows)
    rows.push_back(
        {{"name", row.name}, {"plans", row.plans}, {"mean", row.mean}, {"median", row.median}, {"worst", row.worst}});
  return {{"errors", std::move(rows)},
          {"rank_correlation", summary.rank_correlation ? json(*summary.rank_correlation) : json()}};
}

json number_or_null(double value) { return value <= kMost ? json(value) : json(); }

}  // namespace

const char* to_string(ValueSource source) { return source == ValueSource::measured ? "measured" : "modelled"; }

std::optional<double> ComparedValue::error() const {
  if (!measured || *measured == 0) return std::nullopt;
  return (predicted - *measured) / *measured;
}

std::string ComparedExchange::name() const {
  if (ranks.empty()) return kind;
  // Many ranks are the first ones, as it goes on, and the last.
  constexpr std::size_t kShown = 4;
  const std::vector<int> first(ranks.begin(), ranks.begin() + std::ptrdiff_t(std::min(ranks.size(), kShown)));
  return fmt::format("{} among {} ranks {}{}", kind, ranks.size(), fmt::join(first, ", "),
                     ranks.size() > kShown ? fmt::format(" ... {}", ranks.back()) : "");
}

ComparedValue ComparedExchange::compared_bytes() const {
  return {name(), predicted_bytes, measured_bytes, measured_bytes, measured_bytes, ValueSource::measured};
}

const std::string* ValidationReport::disturbed() const {
  for (const std::string& note : notes)
    for (const std::string_view reason : {kRanksWaited, kSearchesRan})
      if (note.find(reason) != std::string::npos) return &note;
  return nullptr;
}

json write_validation(const ValidationReport& report) {
  json document = {{"format", "turnpoint/validation@1"},
                   {"model", valid_utf8(report.model)},
                   {"hardware", valid_utf8(report.hardware)},
                   {"plan", valid_utf8(report.plan)},
                   {"backend", report.backend},
                   {"mode", report.mode},
                   {"ranks", report.ranks},
                   {"cores", report.cores},
                   {"date", report.date},
                   {"calibrated", report.calibrated},
                   {"step", write_value(report.step)},
                   {"execution", write_value(report.execution)},
                   {"network", write_value(report.network)},
                   {"kind", report.placement ? "placement"
                            : report.ratio   ? "ratio"
                                             : "sharding"},
                   {"phases", write_values(report.phases)},
                   {"operators", write_values(report.operators)},
                   {"collectives", write_values(report.collectives)},
                   {"memory", write_values(report.memory)},
                   {"bytes_sent", write_value(report.bytes_sent)}};
  json notes = json::array();
  for (const auto& note : report.notes) notes.push_back(valid_utf8(note));
  document["notes"] = std::move(notes);
  if (!report.devices.empty()) document["devices"] = write_values(report.devices);
  if (!report.engine.empty()) {
    document["engine"] = valid_utf8(report.engine);
    document["losses"] = report.losses;
    json& exchanges = document["exchanges"] = json::array();
    for (const ComparedExchange& exchange : report.exchanges) exchanges.push_back(write_exchange(exchange));
  }
  if (report.numerics)
    document["numerics"] = {{"loss_error", number_or_null(report.numerics->loss_error)},
                            {"gradient_error", number_or_null(report.numerics->gradient_error)},
                            {"tolerance", report.numerics->tolerance},
                            {"precision", report.numerics->precision},
                            {"where", valid_utf8(report.numerics->where)}};
  if (report.numerics && report.numerics->rounding) {
    const StepRounding& rounding = *report.numerics->rounding;
    document["numerics"]["rounding"] = {{"precision", rounding.precision},
                                        {"loss_error", rounding.loss_error},
                                        {"gradient_error", rounding.gradient_error},
                                        {"loss_tolerance", rounding.loss_tolerance},
                                        {"gradient_tolerance", rounding.gradient_tolerance},
                                        {"where", valid_utf8(rounding.where)}};
  }
  return document;
}

Expected<ValidationReport> read_validation(const json& document, const std::string& where) {
  JsonFields fields(document, where);
  ValidationReport report = read_report(fields);
  if (fields.error()) return *fields.error();
  return report;
}

json write_validations(const std::vector<ValidationReport>& reports) {
  json list = json::array();
  std::vector<ValidationReport> plain, calibrated;
  for (const auto& report : reports) {
    list.push_back(write_validation(report));
    (report.calibrated ? calibrated : plain).push_back(report);
  }
  json document = {{"format", "turnpoint/validations@1"}, {"reports", std::move(list)}};
  if (!plain.empty() || calibrated.empty()) document["before"] = write_summary(summarise(plain));
  if (!calibrated.empty()) document["calibrated"] = write_summary(summarise(calibrated));
  return document;
}

Expected<std::vector<ValidationReport>> read_validations(const json& document, const std::string& where) {
  JsonFields fields(document, where);
  std::vector<ValidationReport> reports;
  if (fields.text("format", std::string()) != "turnpoint/validations@1") {
    if (fields.error()) return *fields.error();
    auto one = read_validation(document, where);
    if (!one) return one.error();
    reports.push_back(std::move(*one));
    return reports;
  }
  if (!fields.has("reports")) fields.fail("reports", "is missing");
  fields.each("reports", [&](JsonFields& item, std::size_t) { reports.push_back(read_report(item)); });
  if (fields.error()) return *fields.error();
  return reports;
}

}  // namespace turnpoint
