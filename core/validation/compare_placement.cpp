// SPDX-License-Identifier: Apache-2.0
#include "core/validation/compare_placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/simulation/simulator.h"

namespace turnpoint {

namespace {

class PlacementComparison {
 public:
  PlacementComparison(const Scenario& scenario, const PlacementPlan& plan, const StepMeasurement& measured,
                      const Simulation& simulation)
      : scenario_(scenario), model_(*scenario.model), plan_(plan), measured_(measured), simulation_(simulation) {}

  ValidationReport run(const CompareLabels& labels) {
    report_.model = model_.name;
    report_.hardware = scenario_.hardware;
    report_.plan = labels.plan;
    report_.date = labels.date;
    report_.calibrated = labels.calibrated;
    report_.placement = true;
    report_.backend = measured_.backend;
    report_.mode = to_string(measured_.mode);
    report_.ranks = std::max(1, measured_.ranks);
    report_.cores = measured_.cores;
    operators();
    transfers();
    step();
    memory();
    set_numerics(report_, measured_);
    notes();
    return std::move(report_);
  }

 private:
  ComparedValue timed(std::string name, double predicted, const Spread& spread) const {
    ComparedValue value = modelled(std::move(name), predicted);
    value.measured = measured_seconds(measured_, spread);
    value.q1 = spread.q1_s;
    value.q3 = spread.q3_s;
    value.source = ValueSource::measured;
    return value;
  }
  static ComparedValue counted(std::string name, double predicted, double measured) {
    ComparedValue value = modelled(std::move(name), predicted);
    value.measured = value.q1 = value.q3 = measured;
    value.source = ValueSource::measured;
    return value;
  }

  void operators() {
    std::vector<ComparedValue> all(model_.operators.size());
    std::array<double, 4> phases{};
    for (TaskIndex t = 0; t < plan_.graph->task_count(); ++t) {
      const double seconds = plan_.graph->time_s[t] / plan_.graph->speed_of(plan_.placement.device[t]);
      all[plan_.operator_of[t].index].predicted += seconds;
      phases[std::size_t(plan_.role[t] == TaskRole::forward  ? StepPhase::forward
                         : plan_.role[t] == TaskRole::update ? StepPhase::update
                                                             : StepPhase::backward)] += seconds;
    }
    report_.phases = compare_phases(phases, measured_);
    for (const MeasuredPhase& phase : measured_.phases) {
      if (phase.op.index >= all.size()) continue;
      const ComparedValue part = timed({}, 0, phase.time);
      ComparedValue& value = all[phase.op.index];
      value.measured = value.measured.value_or(0) + *part.measured;
      value.q1 += part.q1;
      value.q3 += part.q3;
      value.source = ValueSource::measured;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].predicted == 0 && !all[i].measured) continue;
      all[i].name = model_.operators[OperatorId(i)].name;
      report_.operators.push_back(std::move(all[i]));
    }
  }

  void transfers() {
    for (std::size_t t = 0; t < simulation_.transfers.size(); ++t) {
      const SimulatedTransfer& transfer = simulation_.transfers[t];
      const std::string name = fmt::format("{}: device {} to {}", std::string(plan_.graph->names[transfer.source]),
                                           transfer.from, transfer.to);
      report_.collectives.push_back(timed(name, transfer.end_s - transfer.start_s, measured_.transfers[t].time));
      if (measured_.transfers[t].received_bytes > measured_.transfers[t].planned_bytes) ++larger_;
    }
  }

  void step() {
    report_.step = timed("step", simulation_.makespan_s, measured_.step);
    double predicted = 0;
    for (const SimulatedDevice& device : simulation_.devices) predicted = std::max(predicted, device.busy_s);
    const MeasuredDevice* busiest = &measured_.devices.front();
    for (const MeasuredDevice& device : measured_.devices)
      if (measured_seconds(measured_, device.busy) > measured_seconds(measured_, busiest->busy)) busiest = &device;
    report_.execution = timed("execution", predicted, busiest->busy);
    report_.network = counted("network", simulation_.makespan_s - predicted,
                              std::max(0.0, *report_.step.measured - *report_.execution.measured));
  }

  void memory() {
    std::int64_t most = 0;
    for (const SimulatedDevice& device : simulation_.devices) most = std::max(most, device.peak_bytes);
    for (std::size_t d = 0; d < measured_.devices.size(); ++d) {
      const auto& there = simulation_.devices[d];
      report_.memory.push_back(counted(fmt::format("parameters and optimizer, device {}", d),
                                       static_cast<double>(there.persistent_bytes),
                                       static_cast<double>(measured_.devices[d].persistent)));
      report_.memory.push_back(counted(fmt::format("peak of device {}", d), static_cast<double>(there.peak_bytes),
                                       static_cast<double>(measured_.devices[d].peak)));
    }
    report_.memory.push_back(counted("peak", static_cast<double>(most), static_cast<double>(measured_.memory.peak)));
    double planned = 0;
    for (const SimulatedTransfer& transfer : simulation_.transfers) planned += static_cast<double>(transfer.bytes);
    report_.bytes_sent = counted("bytes sent", planned, measured_.received_bytes);
  }

  void notes() {
    report_.notes.emplace_back(
        "a placement: execution is the computing of the device that computes longest, network the rest of the step; "
        "phases and bytes are those of all devices");
    if (larger_ > 0)
      report_.notes.push_back(
          fmt::format("{} of {} transfers carry more than the simulator counts: tensors that one task sends to several "
                      "on a device, "
                      "where the simulator counts the largest",
                      larger_, simulation_.transfers.size()));
    report_.notes.push_back(fmt::format("measured times are {} of {} steps",
                                        measured_.backend == "cpu" ? "lower quartiles" : "medians",
                                        measured_.step.samples));
    if (measured_.cores > 0 && measured_.cores < measured_.ranks)
      report_.notes.push_back(
          fmt::format("{} ranks share {}: their times are not those of {} devices", measured_.ranks,
                      measured_.backend == "cuda" ? std::string("a GPU") : fmt::format("{} cores", measured_.cores),
                      measured_.ranks));
    if (scenario_.settings.factors != WhatIf())
      report_.notes.emplace_back("predicted for a machine that is faster or slower by the scenario's factors");
    report_.notes.insert(report_.notes.end(), measured_.notes.begin(), measured_.notes.end());
  }

  const Scenario& scenario_;
  const Model& model_;
  const PlacementPlan& plan_;
  const StepMeasurement& measured_;
  const Simulation& simulation_;
  ValidationReport report_;
  std::size_t larger_ = 0;
};

}  // namespace

Expected<ValidationReport> compare_placement(const Scenario& scenario, const PlacementPlan& plan,
                                             const StepMeasurement& measurement, const CompareLabels& labels) {
  const auto simulation = simulate(*plan.graph, plan.placement);
  if (!simulation) return simulation.error();
  if (plan.operator_of.size() != plan.graph->task_count() || plan.role.size() != plan.operator_of.size() ||
      measurement.step.samples == 0 || measurement.transfers.size() != simulation->transfers.size() ||
      measurement.devices.size() != plan.placement.devices)
    return usage_error("what was measured is not a step of this placement");
  for (std::size_t t = 0; t < measurement.transfers.size(); ++t)
    if (measurement.transfers[t].transfer != static_cast<std::int32_t>(t))
      return usage_error("what was measured does not list the transfers in their order");
  return PlacementComparison(scenario, plan, measurement, *simulation).run(labels);
}

}  // namespace turnpoint
