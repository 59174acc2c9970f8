// SPDX-License-Identifier: Apache-2.0
#include "core/validation/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/base/text.h"
#include "core/cost/operator_cost.h"
#include "core/plan/iteration_cost.h"
#include "core/plan/reprice.h"
#include "core/schedule/plan_lowering.h"

namespace turnpoint {

ComparedValue modelled(std::string name, double predicted) {
  ComparedValue value;
  value.name = std::move(name);
  value.predicted = predicted;
  return value;
}

namespace {

constexpr double kUnexplained = 0.05;  ///< share of the step from which a remainder is worth a note
constexpr double kWaited = 0.3;        ///< and from which CPU ranks must have waited: overheads are a few per cent

ComparedValue counted(std::string name, double predicted, double measured) {
  ComparedValue value = modelled(std::move(name), predicted);
  value.measured = value.q1 = value.q3 = measured;
  value.source = ValueSource::measured;
  return value;
}

class Comparison {
 public:
  Comparison(const Scenario& scenario, const Plan& plan, const StepMeasurement& measured)
      : model_(*scenario.model),
        scenario_(scenario),
        plan_(plan),
        measured_(measured),
        micro_batches_(plan.micro_batches()) {}

  Expected<ValidationReport> run(const CompareLabels& labels) {
    report_.model = model_.name;
    report_.hardware = scenario_.hardware;
    report_.plan = labels.plan;
    report_.date = labels.date;
    report_.calibrated = labels.calibrated;
    report_.backend = measured_.backend;
    report_.mode = to_string(measured_.mode);
    report_.ranks = std::max(1, measured_.ranks);
    report_.cores = measured_.cores;
    operators();
    collectives();
    step();
    if (auto done = memory(); !done) return done.error();
    bytes_and_numerics();
    notes();
    return std::move(report_);
  }

 private:
  void note(std::string_view text) { report_.notes.emplace_back(text); }
  bool slice() const { return measured_.mode == StepMode::slice; }

  ComparedValue timed(std::string name, double predicted, const Spread& spread) const {
    ComparedValue value = counted(std::move(name), predicted, measured_seconds(measured_, spread));
    value.q1 = spread.q1_s;
    value.q3 = spread.q3_s;
    return value;
  }

  static void add(ComparedValue& sum, const ComparedValue& part) {
    sum.predicted += part.predicted;
    if (!part.measured) return;
    sum.measured = sum.measured.value_or(0) + *part.measured;
    sum.q1 += part.q1;
    sum.q3 += part.q3;
    sum.source = ValueSource::measured;
  }
  static void take_back(ComparedValue& sum) {
    sum.measured.reset();
    sum.q1 = sum.q3 = 0;
    sum.source = ValueSource::modelled;
  }

  void operators() {
    std::vector<ComparedValue> parts(model_.operators.size());
    for (const MeasuredPhase& phase : measured_.phases) {
      if (phase.op.index >= parts.size()) continue;
      add(parts[phase.op.index], timed({}, 0, phase.time));
    }
    report_.execution = modelled("execution", 0);
    int missing = 0;
    for (const PlanOperator& op : plan_.operators) {
      ComparedValue& value = parts[op.op.index];
      value.name = model_.operators[op.op].name;
      const CostBreakdown cost = of_iteration(op, micro_batches_);
      value.predicted = cost.compute_s();
      if (value.predicted == 0 && !value.measured) continue;
      missing += !value.measured;
      add(report_.execution, value);
      report_.operators.push_back(std::move(value));
    }
    if (missing == 0) {
      std::array<double, 4> predicted{};
      for (const PlanOperator& op : plan_.operators) {
        CostBreakdown cost = of_iteration(op, micro_batches_);
        predicted[std::size_t(StepPhase::forward)] += cost[ComputePart::forward];
        predicted[std::size_t(StepPhase::backward)] += cost[ComputePart::backward];
        predicted[std::size_t(StepPhase::recompute)] += cost[ComputePart::recompute];
        predicted[std::size_t(StepPhase::update)] += cost[ComputePart::update];
      }
      report_.phases = compare_phases(predicted, measured_);
      return;
    }
    take_back(report_.execution);
    report_.notes.push_back(fmt::format("{} operators were not measured, so neither is their sum", missing));
  }

  using Key = std::tuple<std::int32_t, std::uint32_t, bool, std::int32_t>;
  static Key key(std::int32_t reshard, OperatorId op, bool backward, std::int32_t step) {
    return reshard >= 0 ? Key{reshard, 0, backward, step} : Key{-1, op.index, false, step};
  }

  void collective(const std::string& of, const ReshardStep& step, const Key& which, int times) {
    if (step.move == ReshardMove::slice) return;
    const std::string name = fmt::format("{}: {}", of, to_string(step.move));
    const auto found = exchanges_.find(which);
    planned_bytes_ += times * step.bytes;
    if (found == exchanges_.end() || !found->second->time) {
      unmeasured_ += 1;
      report_.collectives.push_back(modelled(name, times * step.time_s));
    } else {
      report_.collectives.push_back(timed(name, times * step.time_s, *found->second->time));
    }
    add(report_.network, report_.collectives.back());
  }

  void collectives() {
    report_.network = modelled("network", 0);
    for (const MeasuredExchange& exchange : measured_.exchanges)
      exchanges_[key(exchange.reshard, exchange.op, exchange.backward, exchange.step)] = &exchange;
    for (std::size_t r = 0; r < plan_.reshards.size(); ++r) {
      const PlanReshard& reshard = plan_.reshards[r];
      const std::string to =
          reshard.consumer.valid() ? model_.operators[reshard.consumer].name : std::string("all readers");
      const std::string of = fmt::format("{} to {}", model_.tensors[reshard.tensor].name, to);
      for (const bool backward : {false, true}) {
        const auto steps = backward ? reshard.backward() : reshard.forward;
        for (std::size_t s = 0; s < steps.size(); ++s)
          collective(backward ? of + " (backward)" : of, steps[s],
                     key(static_cast<std::int32_t>(r), {}, backward, static_cast<std::int32_t>(s)), micro_batches_);
      }
    }
    for (const PlanOperator& op : plan_.operators) {
      const std::string of = fmt::format("parameters of {}", model_.operators[op.op].name);
      const auto steps = all_steps(op.parameters);
      const auto times = times_an_iteration(op.parameters, op.choice.update, micro_batches_);
      for (std::size_t s = 0; s < steps.size(); ++s)
        collective(of, steps[s], key(-1, op.op, false, static_cast<std::int32_t>(s)), times[s]);
      CostBreakdown cost = op.cost;
      if (const double host = cost[NetworkPart::offload]; host > 0) {
        host_s_ += host;
        report_.collectives.push_back(
            modelled(fmt::format("{}: optimizer state from the host and back", model_.operators[op.op].name), host));
      }
    }
    if (unmeasured_ > 0) {
      take_back(report_.network);
    } else if (!slice() && !report_.network.measured) {
      // A plan without exchanges takes no time for them: that is known, not modelled.
      report_.network = counted("network", 0, 0);
    }
    if (unmeasured_ > 0 && !slice())
      report_.notes.push_back(fmt::format("{} collectives were not measured, so neither is their sum", unmeasured_));
  }

  bool in_messages() const {
    for (const PlanOperator& op : plan_.operators)
      for (const ReshardStep& step : all_steps(op.parameters))
        if (step.message_bytes > 0) return true;
    return false;
  }

  void step() {
    const double predicted = report_.execution.predicted + (slice() ? 0 : report_.network.predicted);
    report_.step = measured_.step.samples > 0 ? timed("step", predicted, measured_.step) : modelled("step", predicted);
    if (slice())
      note("one device's part alone: step and execution are its computing; network is modelled and not in the step");
    if (!slice() && in_messages())
      note(
          "ranks exchange every operator's gradients by themselves; the prediction has them in larger messages, which "
          "have fewer latencies");
    if (host_s_ > 0)
      report_.notes.push_back(
          fmt::format("the way of optimizer state to the host and back is modelled ({}) and not in the step",
                      format_seconds(host_s_)));
    if (!report_.step.measured || !report_.execution.measured || (!slice() && !report_.network.measured)) return;
    const double rest =
        *report_.step.measured - *report_.execution.measured - (slice() ? 0 : *report_.network.measured);
    if (std::abs(rest) > kUnexplained * *report_.step.measured)
      report_.notes.push_back(
          rest > 0 ? fmt::format("{} of the step are outside of operators and collectives{}", format_seconds(rest),
                                 measured_.backend == "cpu" && rest > kWaited * *report_.step.measured
                                     ? fmt::format(": {}, as where something else keeps the machine busy", kRanksWaited)
                                     : "")
                   : fmt::format("operators and collectives of the slowest ranks add up to {} more than the step",
                                 format_seconds(-rest)));
  }

  /// What probabilities in fp32 take of a device: of all losses, and of those that keep them until backward.
  struct LossExcess {
    std::int64_t made = 0, kept = 0;
  };
  LossExcess loss_excess() const {
    const Model& model =
        plan_.pipeline && plan_.pipeline->micro_batch ? *plan_.pipeline->micro_batch : *scenario_.model;
    LossExcess excess;
    for (const PlanOperator& op : plan_.operators) {
      const std::int64_t bytes =
          loss_excess_bytes(scenario_.settings, model, model.operators[op.op], op.split, plan_.mesh);
      excess.made += bytes;
      if (!op.choice.recompute) excess.kept += bytes;
    }
    return excess;
  }

  Expected<void> memory() {
    CostBreakdown cost = plan_.cost;
    const Scenario* scenario = &scenario_;
    const Plan* plan = &plan_;
    Scenario full = scenario_;
    full.settings.loss = LossPrecision::as_activations;
    Plan whole;
    if (scenario_.settings.accounting == Accounting::paper) {
      full.settings.accounting = Accounting::full;
      auto priced = repriced(full, plan_);
      if (!priced) return priced.error();
      whole = std::move(*priced);
      cost = whole.cost;
      plan = &whole;
      scenario = &full;
      note(
          "the search counted parameters and kept tensors only; the memory predicted here counts all that a step "
          "holds");
    }
    if (const LossExcess excess = loss_excess(); excess.made > 0) {
      scenario = &full;
      cost[MemoryPart::activations] -= excess.kept;
      note(
          "the probe's loss keeps logits in 16 bits, and so does the memory predicted here; the plan has "
          "probabilities in fp32");
    }
    const auto peak = serial_peak(*scenario, *plan);
    if (!peak) return peak.error();
    const MeasuredMemory& held = measured_.memory;
    const auto row = [&](const char* name, std::int64_t predicted, std::int64_t measured) {
      report_.memory.push_back(counted(name, static_cast<double>(predicted), static_cast<double>(measured)));
    };
    row("parameters", cost[MemoryPart::parameters], held.parameters);
    row("gradients", cost[MemoryPart::gradients], held.gradients);
    row("optimizer", cost[MemoryPart::optimizer], held.optimizer);
    row("activations", cost[MemoryPart::activations] + cost[MemoryPart::copies], held.kept);
    row("largest sum of these four", cost.memory_bytes(), held.counted_peak);
    row("peak", *peak, held.peak);
    return {};
  }

  void bytes_and_numerics() {
    report_.bytes_sent = slice() ? modelled("bytes sent", planned_bytes_)
                                 : counted("bytes sent", planned_bytes_, measured_.received_bytes);
    set_numerics(report_, measured_);
  }

  void notes() {
    const bool cpu_here = measured_.backend == "cpu";
    report_.notes.push_back(measured_.step.samples == 1
                                ? std::string("measured times are those of a single step")
                                : fmt::format("measured times are {} of {} steps",
                                              cpu_here ? "lower quartiles" : "medians", measured_.step.samples));
    if (!slice() && measured_.cores > 0 && measured_.cores < measured_.ranks)
      report_.notes.push_back(
          fmt::format("{} ranks share {}: their times are not those of {} devices", measured_.ranks,
                      measured_.backend == "cuda" ? std::string("a GPU") : fmt::format("{} cores", measured_.cores),
                      measured_.ranks));
    if (scenario_.settings.factors != WhatIf())
      note("predicted for a machine that is faster or slower by the scenario's factors");
    report_.notes.insert(report_.notes.end(), measured_.notes.begin(), measured_.notes.end());
  }

  const Model& model_;
  const Scenario& scenario_;
  const Plan& plan_;
  const StepMeasurement& measured_;
  int micro_batches_;
  ValidationReport report_;
  std::map<Key, const MeasuredExchange*> exchanges_;
  int unmeasured_ = 0;
  double planned_bytes_ = 0, host_s_ = 0;
};

}  // namespace

std::vector<ComparedValue> compare_phases(const std::array<double, 4>& predicted, const StepMeasurement& measurement) {
  std::vector<ComparedValue> phases;
  for (std::size_t p = 0; p < predicted.size(); ++p) {
    ComparedValue value = modelled(to_string(static_cast<StepPhase>(p)), predicted[p]);
    for (const MeasuredPhase& phase : measurement.phases) {
      if (static_cast<std::size_t>(phase.phase) != p) continue;
      value.measured = value.measured.value_or(0) + measured_seconds(measurement, phase.time);
      value.q1 += phase.time.q1_s;
      value.q3 += phase.time.q3_s;
      value.source = ValueSource::measured;
    }
    if (value.predicted > 0 || value.measured) phases.push_back(std::move(value));
  }
  return phases;
}

void set_numerics(ValidationReport& report, const StepMeasurement& measurement) {
  if (!measurement.numerics) return;
  const StepNumerics& found = *measurement.numerics;
  ReportNumerics numerics;
  numerics.loss_error = found.loss_error;
  // Activations and updated parameters have to agree as well; the worst of them speaks for all.
  numerics.gradient_error = found.gradient_error;
  for (const double error : {found.activation_error, found.update_error})
    if (!(error <= numerics.gradient_error)) numerics.gradient_error = error;
  numerics.tolerance = found.tolerance;
  numerics.precision = found.precision;
  numerics.where = found.where;
  numerics.rounding = found.rounding;
  report.numerics = std::move(numerics);
}

double measured_seconds(const StepMeasurement& measurement, const Spread& spread) {
  return measurement.backend == "cpu" ? spread.q1_s : spread.median_s;
}

Expected<std::int64_t> serial_peak(const Scenario& scenario, const Plan& plan) {
  // Ranks exchange every operator's gradients as soon as they are there, whatever they would travel with elsewhere.
  Plan alone = plan;
  for (PlanOperator& op : alone.operators)
    for (ParameterSteps& group : op.parameters)
      for (ReshardStep& step : group.sync) step.message_bytes = 0;
  const auto lowered = PlanLowering(scenario).lower(alone, UnreadCopies::kept);
  if (!lowered) return lowered.error();
  LaneTimes times;
  for (std::size_t i = 0; i < lowered->items.size(); ++i) {
    times.start_s.push_back(static_cast<double>(i));
    times.end_s.push_back(static_cast<double>(i + 1));
  }
  std::int64_t peak = 0;
  for (const auto& role : memory_over_time(lowered->buffers, times, lowered->persistent(), false))
    peak = std::max(peak, role.peak_bytes);
  return peak;
}

Expected<ValidationReport> compare_step(const Scenario& scenario, const Plan& plan, const StepMeasurement& measurement,
                                        const CompareLabels& labels) {
  if (plan.pipeline && (plan.pipeline->stages > 1 || plan.pipeline->recompute))
    return usage_error("a pipeline's step cannot be compared");
  if (plan.operators.size() != scenario.model->operators.size())
    return usage_error("the plan is not one of this scenario's model");
  return Comparison(scenario, plan, measurement).run(labels);
}

}  // namespace turnpoint
