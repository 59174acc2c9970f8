// SPDX-License-Identifier: Apache-2.0
// Reports as tables: CSV for spreadsheets, Markdown for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/plan_io/escape.h"
#include "core/validation/validation_report.h"

namespace turnpoint {

namespace {

constexpr std::size_t kLongest = 30;  ///< rows of a table in Markdown; the CSV has all
constexpr const char* kValueHead = "part,name,predicted,measured,q1,q3,error,source\r\n";

enum class Unit { seconds, bytes };

std::string csv_row(const char* part, const ComparedValue& value) {
  std::string row = fmt::format("{},{},{},", part, csv_field(value.name), value.predicted);
  if (value.measured)
    row += fmt::format("{},{},{},", *value.measured, value.q1, value.q3);
  else
    row += ",,,";
  if (const auto error = value.error()) row += fmt::format("{}", *error);
  return row + fmt::format(",{}\r\n", to_string(value.source));
}

std::vector<std::string> csv_rows(const ValidationReport& report) {
  std::vector<std::string> rows = {csv_row("step", report.step), csv_row("execution", report.execution),
                                   csv_row("network", report.network), csv_row("bytes_sent", report.bytes_sent)};
  for (const auto& value : report.phases) rows.push_back(csv_row("phase", value));
  for (const auto& value : report.devices) rows.push_back(csv_row("device", value));
  for (const auto& value : report.memory) rows.push_back(csv_row("memory", value));
  for (const auto& value : report.operators) rows.push_back(csv_row("operator", value));
  for (const auto& value : report.collectives) rows.push_back(csv_row("collective", value));
  for (const auto& exchange : report.exchanges) rows.push_back(csv_row("exchange", exchange.compared_bytes()));
  return rows;
}

std::string shown(double value, Unit unit) {
  if (value == 0) return "0";
  // Beyond what an integer of bytes holds, nothing of a size is left to be shown.
  return unit == Unit::seconds ? format_seconds(value) : format_bytes(std::llround(std::min(value, 4e18)));
}

std::string percent(const std::optional<double>& error) {
  return error ? fmt::format("{:+.1f} %", 100 * *error) : std::string("-");
}

/// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '|') safe += '\\';
    safe += c == '\n' || c == '\r' ? ' ' : c;
  }
  return valid_utf8(safe);
}

std::string markdown_row(const ComparedValue& value, Unit unit) {
  const std::string spread =
      value.measured ? fmt::format("{} to {}", shown(value.q1, unit), shown(value.q3, unit)) : std::string("-");
  return fmt::format("| {} | {} | {} | {} | {} |\n", cell(value.name), shown(value.predicted, unit),
                     value.measured ? shown(*value.measured, unit) : std::string("not measured (modelled)"), spread,
                     percent(value.error()));
}

std::string markdown_table(const std::vector<ComparedValue>& values, Unit unit) {
  std::string text = "| | predicted | measured | quartiles | error |\n|---|---|---|---|---|\n";
  for (const auto& value : values) text += markdown_row(value, unit);
  return text;
}

/// Of an engine: what it exchanged, by kind and ranks.
std::string exchange_table(const std::vector<ComparedExchange>& exchanges) {
  if (exchanges.empty()) return {};
  std::string text = "\n## Collectives by kind and ranks\n\n";
  text +=
      "| | bytes predicted | bytes measured | error | collectives predicted | measured |\n|---|---|---|---|---|---|\n";
  for (const ComparedExchange& one : exchanges) {
    const ComparedValue bytes = one.compared_bytes();
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", cell(bytes.name), shown(one.predicted_bytes, Unit::bytes),
                        shown(one.measured_bytes, Unit::bytes), percent(bytes.error()), one.predicted_count,
                        one.measured_count);
  }
  return text;
}

/// The longest of them, and how many there are besides.
std::string longest_table(std::vector<ComparedValue> values, const char* title) {
  if (values.empty()) return {};
  const auto weight = [](const ComparedValue& v) { return std::max(v.predicted, v.measured.value_or(0)); };
  std::stable_sort(values.begin(), values.end(), [&](const auto& a, const auto& b) { return weight(a) > weight(b); });
  const std::size_t count = values.size();
  if (count > kLongest) values.resize(kLongest);
  std::string text = fmt::format("\n## {}\n\n", title) + markdown_table(values, Unit::seconds);
  if (count > kLongest) text += fmt::format("\nThe {} longest of {}; the CSV has all.\n", kLongest, count);
  return text;
}

}  // namespace

std::string write_validation_csv(const ValidationReport& report) {
  std::string csv = kValueHead;
  for (const auto& row : csv_rows(report)) csv += row;
  return csv;
}

std::string write_validations_csv(const std::vector<ValidationReport>& reports) {
  std::string csv = "plan,calibrated," + std::string(kValueHead);
  for (const auto& report : reports)
    for (const auto& row : csv_rows(report))
      csv += csv_field(report.plan) + (report.calibrated ? ",yes," : ",no,") + row;
  return csv;
}

std::string describe(const StepRounding& rounding) {
  const bool holds = rounding.holds();
  return fmt::format("In {} the same step is off by {}: loss by {:.1e} of {:.1e}, gradients by {:.1e} of {:.1e}{}",
                     rounding.precision, holds ? "what rounding explains" : "MORE THAN ROUNDING EXPLAINS",
                     rounding.loss_error, rounding.loss_tolerance, rounding.gradient_error, rounding.gradient_tolerance,
                     holds || rounding.where.empty() ? "" : ", most at " + rounding.where);
}

std::string write_validation_markdown(const ValidationReport& report) {
  std::string text = fmt::format("# {}: predicted against measured\n\n", cell(report.model));
  text += fmt::format("Plan {}; predicted for {}{}; measured {}on {} ({}, {} rank{}, {} {}{}){}.\n\n",
                      cell(report.plan), cell(report.hardware), report.calibrated ? ", calibrated" : "",
                      report.engine.empty() ? std::string() : "by " + cell(report.engine) + " ", report.backend,
                      report.mode, report.ranks, report.ranks == 1 ? "" : "s", report.cores,
                      report.backend == "cuda" ? "GPU" : "core", report.cores == 1 ? "" : "s",
                      report.date.empty() ? "" : ", " + report.date);
  std::vector<ComparedValue> times = {report.step, report.execution, report.network};
  times.insert(times.end(), report.phases.begin(), report.phases.end());
  times.insert(times.end(), report.devices.begin(), report.devices.end());
  text += markdown_table(times, Unit::seconds);
  std::vector<ComparedValue> bytes = report.memory;
  bytes.push_back(report.bytes_sent);
  text += "\n## Memory and bytes sent\n\n" + markdown_table(bytes, Unit::bytes);
  if (report.numerics) {
    text += fmt::format(
        "\nThe partitioned step {} the unpartitioned one ({}): loss off by {:.1e}, gradients by {:.1e}, tolerance "
        "{:.1e}{}.\n",
        report.numerics->holds() ? "equals" : "DIFFERS FROM", report.numerics->precision, report.numerics->loss_error,
        report.numerics->gradient_error, report.numerics->tolerance,
        report.numerics->where.empty() ? "" : ", most at " + cell(report.numerics->where));
    if (report.numerics->rounding) text += "\n" + cell(describe(*report.numerics->rounding)) + ".\n";
  }
  if (!report.losses.empty())
    text += fmt::format("\nLoss {:.6g} in the first of {} steps, {:.6g} in the last.\n", report.losses.front(),
                        report.losses.size(), report.losses.back());
  text += exchange_table(report.exchanges);
  text += longest_table(report.operators, "Operators");
  text += longest_table(report.collectives, report.placement ? "Transfers" : report.ratio ? "Moves" : "Collectives");
  if (!report.notes.empty()) text += "\n## Notes\n\n";
  for (const auto& note : report.notes) text += fmt::format("- {}\n", cell(note));
  return text;
}

std::string write_summary_markdown(const std::vector<ValidationReport>& reports) {
  const ErrorSummary summary = summarise(reports);
  std::string text = "| error of | plans | mean | median | largest |\n|---|---|---|---|---|\n";
  for (const auto& row : summary.rows)
    text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", row.name, row.plans, 100 * row.mean,
                        100 * row.median, 100 * row.worst);
  if (summary.rank_correlation)
    text += fmt::format("\nRank correlation of predicted and measured step times: {:.3f} over {} plans.\n",
                        *summary.rank_correlation, summary.rows.front().plans);
  text += "\n| plan | step predicted | step measured | error | peak predicted | peak measured | error |\n";
  text += "|---|---|---|---|---|---|---|\n";
  for (const auto& report : reports) {
    const auto peak = std::find_if(report.memory.begin(), report.memory.end(),
                                   [](const ComparedValue& value) { return value.name == "peak"; });
    const ComparedValue memory = peak == report.memory.end() ? ComparedValue{} : *peak;
    const auto measured = [](const ComparedValue& value, Unit unit) {
      return value.measured ? shown(*value.measured, unit) : std::string("-");
    };
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", cell(report.plan),
                        shown(report.step.predicted, Unit::seconds), measured(report.step, Unit::seconds),
                        percent(report.step.error()), shown(memory.predicted, Unit::bytes),
                        measured(memory, Unit::bytes), percent(memory.error()));
  }
  return text;
}

}  // namespace turnpoint
