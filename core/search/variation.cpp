// SPDX-License-Identifier: Apache-2.0
#include "core/search/variation.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/plan/resemblance.h"
#include "core/scenario/scenario_json.h"
#include "core/schedule/fitting.h"
#include "core/search/fitting_batch.h"
#include "core/search/objectives.h"
#include "core/search/registry.h"

namespace turnpoint {

namespace {

using CellState = VariationCell::State;

VariedPlan plan_at(const Result& result, std::size_t index) {
  const ResultPoint& point = result.points[index];
  VariedPlan plan{.point = index,
                  .time_s = point.time_s,
                  .simulated_time_s = point.simulated_time_s,
                  .memory_bytes = point.memory_bytes,
                  .simulated_memory_bytes = point.simulated_memory_bytes};
  if (!result.plans) return plan;
  const AnyPlan any = result.plans->plan(index);
  if (const auto* sharding = std::get_if<PlanPtr>(&any))
    plan.words = describe(resemblance_of(**sharding, *result.scenario->model));
  return plan;
}

void take_scenario(const Scenario& scenario, VariationCell& cell) {
  cell.batch = scenario.tasks ? 0 : scenario.model->batch;
  cell.sequence = scenario.tasks ? 0 : scenario.model->sequence;
  cell.devices = scenario.cluster->devices();
  cell.memory_limit = scenario.memory_limit();
  cell.price_per_hour = scenario.price_per_hour();
}

/// `result` is judged.
void take_answer(const Result& result, VariationCell& cell) {
  cell.clock = result.clock;
  cell.exact = result.exact;
  cell.gap = result.gap;
  cell.plans = result.points.size();
  cell.notes = result.notes;
  if (result.points.empty()) {
    cell.state = CellState::failed;
    cell.reason = result.notes.empty() ? "no plan" : result.notes.front();
    return;
  }
  if (const auto fastest = result.fastest_that_fits()) {
    cell.fastest = plan_at(result, *fastest);
    // Where nothing fits the turning point would be one that does not.
    if (result.turning_point) cell.turning = plan_at(result, *result.turning_point);
    return;
  }
  const auto least = least_peak(result);
  cell.least_bytes = least ? *result.points[*least].simulated_memory_bytes : result.points.front().memory_bytes;
  cell.state = CellState::nothing_fits;
  cell.reason = fmt::format("no plan{} fits {}: the least any needs is {}", space_words(result.traits),
                            format_bytes(cell.memory_limit), format_bytes(cell.least_bytes));
}

/// Why the method has no such quantity of its own; empty: it may have.
std::string has_no(const VariedMethod& method, Varied quantity) {
  if (quantity != Varied::micro_batches || !method.method->other_method.empty()) return {};
  const auto& options = method.method->options;
  const bool has = std::any_of(options.begin(), options.end(),
                               [](const OptionRecord& option) { return option.key == "micro-batches"; });
  return has ? std::string() : fmt::format("{} has no number of micro-batches to choose", method.method->name);
}

class VariationRun {
 public:
  VariationRun(const VariationRequest& request, const RunContext& context,
               const std::function<void(const VariationCell&)>& found)
      : request_(request),
        context_(context),
        found_(found),
        steps_(request.methods.size() * request.axis.values.size()) {}

  Expected<void> run() {
    for (const bool frontier : {false, true})
      for (const std::int64_t value : request_.axis.values)
        for (const VariedMethod& method : request_.methods) {
          if (method.method->frontier != frontier) continue;
          if (context_.cancelled()) return cancelled_error();
          auto cell = answer(method, value);
          if (!cell) return cell.error();
          found_(*cell);
          ++step_;
        }
    return {};
  }

 private:
  /// Bound and cut once for all methods.
  const Expected<ScenarioPtr>& scenario_at(std::int64_t value) {
    const auto known = scenarios_.find(value);
    if (known != scenarios_.end()) return known->second;
    return scenarios_.emplace(value, varied_scenario(request_.subject, request_.axis.quantity, value, request_.open))
        .first->second;
  }

  RunContext part_of_it(const VariedMethod& method, std::int64_t value) const {
    RunContext part = context_;
    if (!context_.progress) return part;
    const std::string at = fmt::format("{} {}, {}", quantity_of(request_.axis.quantity).key, value, method.name());
    // Parts of an answer count their progress from the start again; the whole's does not fall.
    auto most = std::make_shared<std::atomic<double>>(0.0);
    part.progress = [sink = context_.progress, at, most, step = step_, steps = steps_](const Progress& inner) {
      const double done = std::max(most->load(), std::clamp(inner.fraction, 0.0, 1.0));
      most->store(done);
      sink({fmt::format("{}: {}", at, inner.phase), (static_cast<double>(step) + done) / static_cast<double>(steps)});
    };
    part.report("scenario", 0);
    return part;
  }

  static VariationCell without(VariationCell cell, CellState state, std::string reason) {
    cell.state = state;
    cell.reason = std::move(reason);
    return cell;
  }

  /// Errors: cancelled.
  Expected<VariationCell> answer(const VariedMethod& method, std::int64_t value) {
    VariationCell cell;
    cell.value = value;
    cell.method = method.name();
    const RunContext part = part_of_it(method, value);
    const auto& scenario = scenario_at(value);
    if (!scenario) return without(std::move(cell), CellState::cannot_be, scenario.error().message());
    take_scenario(**scenario, cell);
    if (auto reason = has_no(method, request_.axis.quantity); !reason.empty())
      return without(std::move(cell), CellState::cannot_be, std::move(reason));
    const std::string parameters = varied_parameters(method, request_.axis.quantity, value);
    auto searcher = make_searcher(*method.method, parameters);
    if (!searcher) return without(std::move(cell), CellState::cannot_be, searcher.error().what);
    if (auto reason = refusal_of(*method.method, parameters, **scenario); !reason.empty())
      return without(std::move(cell), CellState::cannot_be, std::move(reason));
    const auto start = std::chrono::steady_clock::now();
    const ResultPtr known = known_answer({method.method, parameters}, value);
    Expected<ResultPtr> result = known ? known : (*searcher)->run(*scenario, SearchPass::exact, part);
    // What a search had when it was stopped is no answer.
    if (context_.cancelled()) return cancelled_error();
    if (result) result = judged(*result, part);
    cell.search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (known) cell.search_s = known->search_s;
    if (!result) return ended(std::move(cell), result.error());
    take_answer(**result, cell);
    return cell;
  }

  ResultPtr known_answer(const VariedMethod& asked, std::int64_t value) const {
    const Varied quantity = request_.axis.quantity;
    const bool own = quantity == Varied::micro_batches || value == own_value(quantity, request_.subject);
    return own && request_.known ? request_.known(asked.name()) : nullptr;
  }

  /// Where peaks cannot be had plain sums go on to say what fits, and a note says that they do.
  static Expected<ResultPtr> judged(const ResultPtr& result, const RunContext& part) {
    auto by_peaks = judged_by_peaks(result, part);
    if (by_peaks || by_peaks.error().code == ErrorCode::cancelled) return by_peaks;
    auto by_sums = std::make_shared<Result>(*result);
    by_sums->notes.push_back(
        fmt::format("what fits is judged by plain sums, as no peak could be had: {}", by_peaks.error().message()));
    return ResultPtr(std::move(by_sums));
  }

  static Expected<VariationCell> ended(VariationCell cell, const Error& error) {
    if (error.code == ErrorCode::cancelled) return error;
    const bool refused = error.code == ErrorCode::usage || error.code == ErrorCode::bad_input;
    return without(std::move(cell), refused ? CellState::cannot_be : CellState::failed, error.what);
  }

  const VariationRequest& request_;
  const RunContext& context_;
  const std::function<void(const VariationCell&)>& found_;
  std::map<std::int64_t, Expected<ScenarioPtr>> scenarios_;
  std::size_t step_ = 0, steps_ = 1;
};

}  // namespace

std::optional<double> VariationCell::samples_per_second(double time_s) const {
  if (batch < 1 || !(time_s > 0)) return std::nullopt;
  return static_cast<double>(batch) / time_s;
}

std::optional<double> VariationCell::tokens_per_second(double time_s) const {
  const auto samples = samples_per_second(time_s);
  if (!samples || sequence < 1) return std::nullopt;
  return *samples * static_cast<double>(sequence);
}

std::optional<double> VariationCell::price_per_step(double time_s) const {
  if (!price_per_hour || devices < 1) return std::nullopt;
  return *price_per_hour * devices * time_s / 3600;
}

std::optional<double> VariationCell::price_per_million(double time_s) const {
  const auto price = price_per_step(time_s);
  if (!price || batch < 1) return std::nullopt;
  return *price * 1e6 / (static_cast<double>(batch) * static_cast<double>(std::max<std::int64_t>(1, sequence)));
}

const VariationCell* Variation::find(std::int64_t value, std::string_view method) const {
  const auto at = std::find_if(cells.begin(), cells.end(),
                               [&](const VariationCell& cell) { return cell.value == value && cell.method == method; });
  return at == cells.end() ? nullptr : &*at;
}

void Variation::put(VariationCell cell) {
  if (const VariationCell* known = find(cell.value, cell.method)) {
    cells[std::size_t(known - cells.data())] = std::move(cell);
    return;
  }
  const auto place = [this](const VariationCell& one) {
    const auto method = std::find(methods.begin(), methods.end(), one.method);
    return std::pair(method - methods.begin(), one.value);
  };
  const auto before =
      std::find_if(cells.begin(), cells.end(), [&](const VariationCell& other) { return place(cell) < place(other); });
  cells.insert(before, std::move(cell));
}

Variation variation_of(const VariationRequest& request) {
  const Scenario& scenario = *request.subject.scenario;
  Variation variation;
  variation.axis = request.axis;
  for (const VariedMethod& method : request.methods) variation.methods.push_back(method.name());
  variation.own = own_value(request.axis.quantity, request.subject);
  variation.model = scenario.model->name;
  const Cluster& cluster = *scenario.cluster;
  variation.hardware = request.axis.quantity == Varied::devices ? cluster.device.name : cluster.title;
  if (variation.hardware.empty()) variation.hardware = scenario.hardware;
  variation.scenario = write_scenario(scenario).dump();
  return variation;
}

Expected<void> run_variation(const VariationRequest& request, const RunContext& context,
                             const std::function<void(const VariationCell&)>& found) {
  if (auto can = check_can_vary(request.axis.quantity, request.subject); !can) return can.error();
  return VariationRun(request, context, found).run();
}

}  // namespace turnpoint
