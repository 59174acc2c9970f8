// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/compare_engine.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/plan/iteration_cost.h"
#include "core/plan/reprice.h"
#include "core/validation/run_needs.h"

namespace turnpoint {

namespace {

/// Sums in another order differ by some 1e-6, and by more where gradients are small; a wrong collective by far more.
constexpr double kEngineTolerance = 1e-4;

using CollectiveKey = std::pair<std::string, std::vector<int>>;

CollectiveKey key_of(const EngineCollective& one) { return {one.kind, one.ranks}; }

/// Rank 0 and those that differ from it along these axes only; ranks count devices, the last axis fastest.
std::vector<int> ranks_along(const Mesh& mesh, std::uint32_t axes) {
  std::vector<int> ranks{0};
  int stride = mesh.devices();
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
    stride /= mesh.axes[a].size;
    if (!(axes >> a & 1u)) continue;
    const std::vector<int> before = ranks;
    for (int place = 1; place < mesh.axes[a].size; ++place)
      for (const int rank : before) ranks.push_back(rank + place * stride);
  }
  std::ranges::sort(ranks);
  return ranks;
}

/// Whether it is made once more where a layer runs forward again: such a layer finds its inputs as they were read.
bool runs_again(const Plan& plan, const PlanReshard& reshard) {
  if (!plan.pipeline || !plan.pipeline->recompute || plan.pipeline->selective) return false;
  const int layer = plan.pipeline->layer_of[reshard.producer.index];
  return layer >= 0 && (!reshard.consumer.valid() || plan.pipeline->layer_of[reshard.consumer.index] == layer);
}

double quantile(const std::vector<double>& sorted, double at) {
  const double place = at * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double rest = place - static_cast<double>(below);
  return below + 1 < sorted.size() ? sorted[below] + rest * (sorted[below + 1] - sorted[below]) : sorted[below];
}

ComparedValue exactly(std::string name, double predicted, std::optional<double> measured) {
  ComparedValue value = modelled(std::move(name), predicted);
  if (!measured) return value;
  value.measured = value.q1 = value.q3 = *measured;
  value.source = ValueSource::measured;
  return value;
}

void add_times(ValidationReport& report, const Scenario& scenario, const Plan& plan,
               const EngineMeasurement& measurement) {
  std::vector<double> times = measurement.times_s;
  std::ranges::sort(times);
  CostBreakdown cost = plan.cost;
  report.step = exactly("step", cost.time_s(), quantile(times, 0.5));
  report.step.q1 = quantile(times, 0.25);
  report.step.q3 = quantile(times, 0.75);
  report.execution = modelled("execution", cost.compute_s());
  report.network = modelled("network", cost.network_s());
  const int micro_batches = plan.micro_batches();
  for (const PlanOperator& op : plan.operators)
    if (const double seconds = of_iteration(op, micro_batches).compute_s(); seconds > 0)
      report.operators.push_back(modelled(scenario.model->operators[op.op].name, seconds));
}

void add_collectives(ValidationReport& report, const Engine& engine, const Scenario& scenario, const Plan& plan,
                     const EngineMeasurement& measurement) {
  double of_loss = 0;
  std::map<CollectiveKey, ComparedExchange> rows;
  const auto row = [&](const EngineCollective& one) -> ComparedExchange& {
    ComparedExchange& found = rows[key_of(one)];
    found.kind = one.kind;
    found.ranks = one.ranks;
    return found;
  };
  double predicted = 0, measured = 0;
  for (const EngineCollective& one : planned_collectives(scenario, plan, engine.sees_loss, &of_loss)) {
    row(one).predicted_count = one.count;
    row(one).predicted_bytes = one.bytes;
    predicted += one.bytes;
  }
  for (const EngineCollective& one : measurement.collectives) {
    row(one).measured_count = one.count;
    row(one).measured_bytes = one.bytes;
    measured += one.bytes;
  }
  for (auto& [key, exchange] : rows) report.exchanges.push_back(std::move(exchange));
  report.bytes_sent = exactly("bytes sent", predicted, measured);
  if (of_loss > 0)
    report.notes.push_back(
        fmt::format("what the loss sums of its rows, {} by the plan, is in none of the bytes: {} does that inside an "
                    "operator",
                    format_bytes(static_cast<std::int64_t>(of_loss)), engine.name));
}

Expected<void> add_memory(ValidationReport& report, const Scenario& scenario, const Plan& plan,
                          const EngineMeasurement& measurement) {
  Scenario full = scenario;
  full.settings.accounting = Accounting::full;
  Plan whole = plan;
  if (scenario.settings.accounting != Accounting::full) {
    auto priced = repriced(full, plan);
    if (!priced) return priced.error();
    whole = std::move(*priced);
    report.notes.emplace_back(
        "the search counted parameters and kept tensors only; the memory predicted here counts all that a step holds");
  }
  const auto peak = serial_peak(full, whole);
  if (!peak) return peak.error();
  const auto add = [&](const char* name, std::int64_t predicted, const std::optional<std::int64_t>& bytes) {
    report.memory.push_back(exactly(name, static_cast<double>(predicted),
                                    bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt));
  };
  CostBreakdown& cost = whole.cost;
  add("parameters", cost[MemoryPart::parameters], measurement.parameters);
  add("gradients", cost[MemoryPart::gradients], measurement.gradients);
  add("optimizer", cost[MemoryPart::optimizer], measurement.optimizer);
  add("activations", cost[MemoryPart::activations] + cost[MemoryPart::copies], std::nullopt);
  add("peak", *peak, measurement.peak);
  return {};
}

}  // namespace

std::vector<EngineCollective> planned_collectives(const Scenario& scenario, const Plan& plan, bool with_loss,
                                                  double* loss_bytes) {
  std::map<CollectiveKey, EngineCollective> found;
  const auto add = [&](const ReshardStep& step, int times) {
    if (step.move == ReshardMove::slice) return;
    EngineCollective one{to_string(step.move), {}, times, times * step.bytes};
    if (step.move != ReshardMove::permute) one.ranks = ranks_along(plan.mesh, step.axes);
    const auto [at, is_new] = found.try_emplace(key_of(one), one);
    if (is_new) return;
    at->second.count += one.count;
    at->second.bytes += one.bytes;
  };
  const auto of_loss = [&](OperatorId op) {
    if (!op.valid()) return false;
    const OperatorKind kind = scenario.model->operators[op].kind;
    return kind == OperatorKind::cross_entropy || kind == OperatorKind::loss_statistics;
  };
  const int micro_batches = plan.micro_batches();
  for (const PlanReshard& reshard : plan.reshards) {
    std::vector<ReshardStep> steps = reshard.forward;
    if (runs_again(plan, reshard)) steps.insert(steps.end(), reshard.forward.begin(), reshard.forward.end());
    for (const ReshardStep& step : reshard.backward()) steps.push_back(step);
    const bool left_out = !with_loss && (of_loss(reshard.producer) || of_loss(reshard.consumer));
    for (const ReshardStep& step : steps) {
      if (!left_out) add(step, micro_batches);
      if (left_out && loss_bytes) *loss_bytes += micro_batches * step.bytes;
    }
  }
  for (const PlanOperator& op : plan.operators) {
    const auto steps = all_steps(op.parameters);
    const auto times = times_an_iteration(op.parameters, op.choice.update, micro_batches);
    for (std::size_t k = 0; k < steps.size(); ++k)
      if (times[k] > 0) add(steps[k], times[k]);
  }
  std::vector<EngineCollective> all;
  for (auto& [key, one] : found) all.push_back(std::move(one));
  return all;
}

Expected<ValidationReport> compare_engine(const Engine& engine, const Scenario& scenario, const Plan& plan,
                                          const EngineMeasurement& measurement, const CompareLabels& labels) {
  if (measurement.ranks != plan.mesh.devices())
    return Error{ErrorCode::device,
                 fmt::format("{} ran {} ranks, and the plan is for {} devices", engine.name, measurement.ranks,
                             plan.mesh.devices()),
                 {},
                 {}};
  ValidationReport report;
  report.model = scenario.model->name;
  report.hardware = scenario.hardware;
  report.plan = labels.plan;
  report.date = labels.date;
  report.calibrated = labels.calibrated;
  report.engine = measurement.engine;
  report.backend = measurement.backend;
  report.mode = to_string(StepMode::ranks);
  report.ranks = measurement.ranks;
  report.cores = measurement.cores;
  report.losses = measurement.losses;
  add_times(report, scenario, plan, measurement);
  add_collectives(report, engine, scenario, plan, measurement);
  if (auto done = add_memory(report, scenario, plan, measurement); !done) return done.error();
  if (measurement.numerics) {
    const auto& found = *measurement.numerics;
    report.numerics = ReportNumerics{found.loss_error, found.gradient_error, kEngineTolerance,
                                     found.precision,  found.where,          std::nullopt};
  }
  if (measurement.backend == "cpu" && is_preset(scenario.hardware))
    report.notes.insert(report.notes.begin(),
                        fmt::format("predicted for {}, which is not what ran: processors did", scenario.hardware));
  if (!measurement.device.empty()) report.notes.push_back(fmt::format("ran on {}", measurement.device));
  if (engine.notes)
    for (std::string& note : engine.notes(scenario, plan)) report.notes.push_back(std::move(note));
  report.notes.push_back(measurement.times_s.size() == 1
                             ? std::string("the measured time is that of a single step")
                             : fmt::format("the measured time is the median of {} steps; how much of it is computing "
                                           "and how much collectives is not told apart",
                                           measurement.times_s.size()));
  if (measurement.cores > 0 && measurement.cores < measurement.ranks)
    report.notes.push_back(fmt::format("{} ranks share {} cores: their times are not those of {} devices",
                                       measurement.ranks, measurement.cores, measurement.ranks));
  report.notes.insert(report.notes.end(), measurement.notes.begin(), measurement.notes.end());
  return report;
}

}  // namespace turnpoint
