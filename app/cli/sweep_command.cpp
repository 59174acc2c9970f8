// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli sweep: one quantity of a scenario varied, everything else as it stands.
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "app/cli/asked_methods.h"
#include "app/cli/commands.h"
#include "app/cli/result_table.h"
#include "app/cli/scenario_arguments.h"
#include "core/base/text.h"
#include "core/search/variation.h"

namespace turnpoint::cli {

namespace {

using Row = std::vector<std::string>;

struct SweepArguments {
  ScenarioArguments scenario;
  std::string over, methods, settings, out;
  int threads = 0;
  bool json = false;
};

std::string rate_text(const std::optional<double>& value) {
  return !value ? std::string("-") : fmt::format(fmt::runtime(*value < 1000 ? "{:.4g}" : "{:.0f}"), *value);
}

/// Three digits, however little a step costs.
std::string price_text(const std::optional<double>& value) { return value ? fmt::format("{:#.3g}", *value) : "-"; }

std::string plan_text(const std::optional<VariedPlan>& plan) {
  return plan ? fmt::format("{}, {}", format_bytes(plan->peak_bytes()), format_seconds(plan->time_s)) : "-";
}

/// A column of the table: its head, what a plan has there, and whether any plan has something.
struct Column {
  std::string head;
  std::function<std::string(const VariationCell&, const VariedPlan&)> text;
  bool shown = true;
};

std::string simulated_text(const VariationCell& cell, const VariedPlan& plan) {
  if (cell.clock == Clock::simulated) return format_seconds(plan.time_s);
  return plan.simulated_time_s ? format_seconds(*plan.simulated_time_s) : "-";
}

std::vector<Column> columns_of(const std::vector<const VariationCell*>& cells) {
  const auto any = [&](auto has) {
    return std::any_of(cells.begin(), cells.end(), [&](const VariationCell* cell) { return has(*cell); });
  };
  const bool tokens = any([](const auto& cell) { return cell.sequence > 0; });
  const bool priced = any([](const auto& cell) { return cell.price_per_hour.has_value(); });
  const bool turns = any([](const auto& cell) { return cell.turning.has_value(); });
  return {
      {"peak", [](const auto&, const auto& plan) { return format_bytes(plan.peak_bytes()); }},
      {"time", [](const auto&, const auto& plan) { return format_seconds(plan.time_s); }},
      {"simulated time", simulated_text},
      {tokens ? "tokens/s" : "samples/s",
       [tokens](const auto& cell, const auto& plan) {
         return rate_text(tokens ? cell.tokens_per_second(plan.time_s) : cell.samples_per_second(plan.time_s));
       }},
      {"price/step", [](const auto& cell, const auto& plan) { return price_text(cell.price_per_step(plan.time_s)); },
       priced},
      {tokens ? "price/M tokens" : "price/M samples",
       [](const auto& cell, const auto& plan) { return price_text(cell.price_per_million(plan.time_s)); }, priced},
      {"turning point", [](const auto& cell, const auto&) { return plan_text(cell.turning); }, turns},
  };
}

std::string method_table(const VariedQuantity& quantity, const std::vector<const VariationCell*>& cells) {
  auto columns = columns_of(cells);
  std::erase_if(columns, [](const Column& column) { return !column.shown; });
  Row head{quantity.key};
  for (const Column& column : columns) head.push_back(column.head);
  head.emplace_back();
  std::vector<Row> rows{std::move(head)};
  for (const VariationCell* cell : cells) {
    Row row{std::to_string(cell->value)};
    for (const Column& column : columns) row.push_back(cell->fastest ? column.text(*cell, *cell->fastest) : "-");
    row.push_back(cell->fastest ? cell->fastest->words : cell->reason);
    rows.push_back(std::move(row));
  }
  return aligned(rows);
}

/// By what the cells have: the clock of their time, and whether peaks or plain sums say what fits, as they do in the
/// papers' accounting whatever peaks there are.
std::string footnote(const std::vector<VariationCell>& cells, Accounting accounting) {
  bool simulated = false, peaks = false, sums = false;
  for (const VariationCell& cell : cells) {
    if (!cell.fastest) continue;
    const bool placed = cell.clock == Clock::simulated;
    simulated |= placed;
    const bool by_peak = accounting == Accounting::full && cell.fastest->simulated_memory_bytes;
    peaks |= !placed && by_peak;
    sums |= !placed && !by_peak;
  }
  std::string text;
  if (peaks)
    text += fmt::format(" Whether a plan fits is judged by its simulated peak{}.", sums ? " where it has one" : "");
  if (sums) text += fmt::format(" {} fits is judged by plain sums.", peaks ? "Whether another" : "Whether a plan");
  if (peaks || sums) text += " Rates and prices are of time, which is a plain sum without overlap.";
  if (simulated)
    text += fmt::format(" Time{} and peak{} are on the simulated clock, and so are rates and prices.",
                        peaks || sums ? " of placements" : "", peaks || sums ? " of those" : "");
  return text;
}

std::string sweep_table(const Variation& sweep, Accounting accounting) {
  const VariedQuantity& quantity = quantity_of(sweep.axis.quantity);
  const std::string own = sweep.own > 0 ? fmt::format(" (it is {})", sweep.own) : std::string();
  std::string text = fmt::format("{} on {}; {} {}{}, everything else as it stands\n", sweep.model, sweep.hardware,
                                 quantity.key, fmt::join(sweep.axis.values, ", "), own);
  for (const std::string& method : sweep.methods) {
    std::vector<const VariationCell*> cells;
    for (const VariationCell& cell : sweep.cells)
      if (cell.method == method) cells.push_back(&cell);
    text += fmt::format("\n{}: the fastest plan that fits\n{}", method, method_table(quantity, cells));
  }
  const std::size_t asked = sweep.methods.size() * sweep.axis.values.size();
  return text + fmt::format("\n{} of {} answers in {:.1f} s.{} --json prints all, --out FILE keeps it.\n",
                            sweep.cells.size(), asked, sweep.search_s, footnote(sweep.cells, accounting));
}

/// However it is written: OUT.CSV is one.
bool is_csv(const std::string& out) {
  constexpr std::string_view kEnd = ".csv";
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return out.size() >= kEnd.size() && std::equal(kEnd.begin(), kEnd.end(), out.end() - kEnd.size(),
                                                 [&](char end, char given) { return same(given, end); });
}

std::string text_for(const SweepArguments& given, const Variation& sweep, bool as_table, Accounting accounting) {
  if (is_csv(given.out)) return variation_csv(sweep);
  return as_table ? sweep_table(sweep, accounting) : write_variation(sweep);
}

/// A split that follows the batch and the number of devices is not worked out again at each value.
void say_split(Varied quantity, const VariationSubject& subject) {
  if (quantity != Varied::batch && quantity != Varied::devices) return;
  std::fprintf(stderr, "note: --settings: the split is that of %s %lld, at every value\n", quantity_of(quantity).key,
               static_cast<long long>(own_value(quantity, subject)));
}

Expected<VariationRequest> request_of(const SweepArguments& given) {
  SweepArguments arguments = given;
  auto axis = parse_varied_axis(arguments.over);
  if (!axis) {
    Error error = axis.error();
    error.what = "--over: " + error.what;
    return error;
  }
  std::optional<TrainingSettings> settings;
  if (!arguments.settings.empty()) {
    auto taken = take_settings(arguments.settings, arguments.scenario);
    if (!taken) return taken.error();
    settings = std::move(*taken);
  }
  auto opened = open_with_source(arguments.scenario);
  if (!opened) return opened.error();
  const Scenario& scenario = *opened->scenario;
  VariationRequest request;
  request.axis = std::move(*axis);
  request.subject = {opened->source, nullptr, scenario.hardware, scenario.settings, opened->scenario};
  if (!arguments.scenario.hardware.empty()) {
    auto whole = open_hardware(arguments.scenario.hardware);
    if (!whole) return whole.error();
    request.subject.cluster = std::move(*whole);
  }
  if (auto can = check_can_vary(request.axis.quantity, request.subject); !can) return can.error();
  std::string wanted = arguments.methods.empty() ? default_method(scenario.tasks != nullptr).name : arguments.methods;
  if (settings) {
    auto both = with_split(wanted, *settings, scenario);
    if (!both) return both.error();
    wanted = std::move(*both);
    say_split(request.axis.quantity, request.subject);
  }
  const auto chosen = chosen_methods(wanted, scenario);
  if (!chosen) return chosen.error();
  for (const ChosenMethod& one : *chosen) request.methods.push_back({one.choice.method, one.choice.parameters});
  request.methods = varied_methods(std::move(request.methods), request.axis.quantity);
  if (request.methods.empty()) return usage_error("none of the methods suits this model on this hardware");
  return request;
}

void say_taken(const Scenario& scenario, Varied quantity) {
  for (const auto& warning : scenario.model->warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  auto taken = scenario.taken;
  std::erase_if(taken, [&](const TakenSetting& one) { return one.key == quantity_of(quantity).key; });
  if (std::any_of(taken.begin(), taken.end(), [](const TakenSetting& one) { return one.stated; }))
    std::fprintf(stderr, "note: taken: %s\n", words_of(taken).c_str());
}

void say_cell(const Variation& sweep, const VariationCell& cell) {
  const std::string what = cell.fastest ? fmt::format("{} and {}", format_bytes(cell.fastest->peak_bytes()),
                                                      format_seconds(cell.fastest->time_s))
                                        : cell.reason;
  std::fprintf(stderr, "%s %lld, %s: %s\n", quantity_of(sweep.axis.quantity).key, static_cast<long long>(cell.value),
               cell.method.c_str(), what.c_str());
}

bool all_are(const Variation& sweep, VariationCell::State state) {
  return std::all_of(sweep.cells.begin(), sweep.cells.end(), [&](const auto& cell) { return cell.state == state; });
}

int run_sweep(const SweepArguments& arguments) {
  if (arguments.json && is_csv(arguments.out))
    return report(usage_error("--json and --out " + arguments.out + ", which is of comma-separated values"));
  if (const int refused = check_output(arguments.out); refused != kDone) return refused;
  const auto request = request_of(arguments);
  if (!request) return report(request.error());
  say_taken(*request->subject.scenario, request->axis.quantity);
  const RunContext context = command_context(arguments.threads);
  Variation sweep = variation_of(*request);
  const bool as_table = !arguments.json && shown_to_a_person(arguments.out);
  const auto start = std::chrono::steady_clock::now();
  const auto done = run_variation(*request, context, [&](const VariationCell& cell) {
    if (!as_table) say_cell(sweep, cell);
    sweep.put(cell);
  });
  sweep.search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!done && done.error().code != ErrorCode::cancelled) return report(done.error());
  if (done && all_are(sweep, VariationCell::State::cannot_be))
    return report(usage_error("no value can be: " + sweep.cells.front().reason));
  const Accounting accounting = request->subject.scenario->settings.accounting;
  const int written = write_output(arguments.out, text_for(arguments, sweep, as_table, accounting));
  if (written != kDone) return written;
  if (!done) {
    std::fprintf(stderr, "turnpoint-cli: the sweep was stopped with %zu of %zu answers\n", sweep.cells.size(),
                 sweep.methods.size() * sweep.axis.values.size());
    return kInterrupted;
  }
  const bool any = std::any_of(sweep.cells.begin(), sweep.cells.end(), [](const auto& cell) { return cell.fits(); });
  if (!any) std::fprintf(stderr, "turnpoint-cli: no plan fits at any value\n");
  return any ? kDone : kInfeasible;
}

}  // namespace

void add_sweep_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("sweep", "Vary one quantity of a scenario: time, peak memory and price at each value");
  auto arguments = std::make_shared<SweepArguments>();
  add_scenario_arguments(*sub, arguments->scenario);
  sub->add_option("--over", arguments->over,
                  "What is varied, and its values: batch, sequence, devices, micro-batches or hidden, as in "
                  "batch=8,16,32 or batch=8..512, which doubles")
      ->required()
      ->type_name("QUANTITY=VALUES");
  sub->add_option("--method", arguments->methods,
                  fmt::format("Methods, comma-separated, or all, which leaves out {} [{}; {} for a task graph]",
                              left_out_of_all(), default_method().name, default_method(true).name));
  sub->add_option("--settings", arguments->settings,
                  "Settings of DeepSpeed, Megatron-LM, NeMo, MaxText or torchtitan: their split beside the methods, "
                  "their batch, sequence and precision where no option names one; over batch or devices the split "
                  "is that of the scenario's own")
      ->type_name("FILE");
  sub->add_option("--threads", arguments->threads, "Threads; 0: all")->check(CLI::Range(0, 1024));
  sub->add_flag("--json", arguments->json, "Print the document also on a terminal, which shows a table without it");
  sub->add_option("--out", arguments->out,
                  "File, of comma-separated values where it ends with .csv; default standard "
                  "output");
  sub->callback([&command, arguments] { command.run = [arguments] { return run_sweep(*arguments); }; });
}

}  // namespace turnpoint::cli
