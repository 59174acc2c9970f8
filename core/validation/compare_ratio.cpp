// SPDX-License-Identifier: Apache-2.0
#include "core/validation/compare_ratio.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/text.h"

namespace turnpoint {

namespace {

constexpr double kWorthANote = 1e-6;  ///< relative difference of bytes

class RatioComparison {
 public:
  RatioComparison(const Scenario& scenario, const RatioPlan& plan, const StepMeasurement& measured)
      : scenario_(scenario), model_(*scenario.model), plan_(plan), measured_(measured) {}

  ValidationReport run(const CompareLabels& labels) {
    report_.model = model_.name;
    report_.hardware = scenario_.hardware;
    report_.plan = labels.plan;
    report_.date = labels.date;
    report_.calibrated = labels.calibrated;
    report_.ratio = true;
    report_.backend = measured_.backend;
    report_.mode = to_string(measured_.mode);
    report_.ranks = std::max(1, measured_.ranks);
    report_.cores = measured_.cores;
    report_.step = timed("step", plan_.cost.time_s(), measured_.step);
    operators();
    moves();
    devices();
    set_numerics(report_, measured_);
    notes();
    return std::move(report_);
  }

 private:
  ComparedValue timed(std::string name, double predicted, const Spread& spread) const {
    ComparedValue value = modelled(std::move(name), predicted);
    add(value, spread);
    return value;
  }
  void add(ComparedValue& value, const Spread& spread) const {
    value.measured = value.measured.value_or(0) + measured_seconds(measured_, spread);
    value.q1 += spread.q1_s;
    value.q3 += spread.q3_s;
    value.source = ValueSource::measured;
  }
  static ComparedValue counted(std::string name, double predicted, double measured) {
    ComparedValue value = modelled(std::move(name), predicted);
    value.measured = value.q1 = value.q3 = measured;
    value.source = ValueSource::measured;
    return value;
  }
  static ComparedValue sum_of(std::string name, const std::vector<ComparedValue>& values) {
    ComparedValue sum = counted(std::move(name), 0, 0);
    for (const ComparedValue& value : values) {
      sum.predicted += value.predicted;
      sum.measured = *sum.measured + value.measured.value_or(0);
      sum.q1 += value.q1;
      sum.q3 += value.q3;
    }
    return sum;
  }

  void operators() {
    std::vector<ComparedValue> all(model_.operators.size());
    std::array<double, 4> phases{};
    for (const RatioPlan::Item& item : plan_.operators) {
      CostBreakdown cost = item.cost;
      all[item.op.index].predicted = cost.compute_s();
      phases[std::size_t(StepPhase::forward)] += cost[ComputePart::forward];
      phases[std::size_t(StepPhase::backward)] += cost[ComputePart::backward];
      phases[std::size_t(StepPhase::recompute)] += cost[ComputePart::recompute];
      phases[std::size_t(StepPhase::update)] += cost[ComputePart::update];
    }
    report_.phases = compare_phases(phases, measured_);
    for (const MeasuredPhase& phase : measured_.phases)
      if (phase.op.index < all.size()) add(all[phase.op.index], phase.time);
    for (std::size_t o = 0; o < all.size(); ++o) {
      if (all[o].predicted == 0 && !all[o].measured) continue;
      all[o].name = model_.operators[OperatorId(o)].name;
      report_.operators.push_back(std::move(all[o]));
    }
    report_.execution = sum_of("execution", report_.operators);
  }

  // A line for each tensor and for each operator's weights that the plan lists or that moved.
  void moves() {
    struct Line {
      ComparedValue value;
      double planned = 0, received = 0;
    };
    std::map<std::pair<bool, std::uint32_t>, Line> lines;
    for (const RatioPlan::Exchange& exchange : plan_.exchanges) {
      Line& line = lines[{false, exchange.tensor.index}];
      line.value.predicted += exchange.seconds;
      line.planned += exchange.all_bytes;
    }
    for (const RatioPlan::Exchange& exchange : plan_.weights) {
      Line& line = lines[{true, exchange.producer.index}];
      line.value.predicted += exchange.seconds;
      line.planned += exchange.all_bytes;
    }
    for (const MeasuredMove& move : measured_.moves) {
      const bool weight = move.kind != MeasuredMove::Kind::activation && move.kind != MeasuredMove::Kind::gradient;
      Line& line = lines[{weight, weight ? move.op.index : move.tensor.index}];
      add(line.value, move.time);
      line.received += move.once_bytes;
      arrived_ += move.received_bytes;
    }
    double planned = 0, received = 0;
    for (auto& [key, line] : lines) {
      const auto& [weight, index] = key;
      line.value.name =
          weight ? model_.operators[OperatorId(index)].name + ": weights" : model_.tensors[TensorId(index)].name;
      planned += line.planned;
      received += line.received;
      otherwise_ += std::abs(line.planned - line.received) > kWorthANote * std::max(1.0, line.planned);
      report_.collectives.push_back(std::move(line.value));
    }
    report_.network = sum_of("network", report_.collectives);
    report_.bytes_sent = counted("bytes sent", planned, received);
  }

  void devices() {
    for (std::size_t d = 0; d < measured_.devices.size(); ++d) {
      const MeasuredDevice& device = measured_.devices[d];
      report_.devices.push_back(
          timed(fmt::format("computing of device {}", d), plan_.device_compute_s[d], device.busy));
      report_.memory.push_back(counted(fmt::format("peak of device {}", d), static_cast<double>(plan_.device_memory[d]),
                                       static_cast<double>(device.peak)));
    }
    report_.memory.push_back(
        counted("peak", static_cast<double>(plan_.most_memory()), static_cast<double>(measured_.memory.peak)));
  }

  void notes() {
    report_.notes.emplace_back(
        "a ratio plan: an operator takes as long as on its slowest device, and memory is what plans count of a device, "
        "without liveness, beside the peak that was there");
    if (otherwise_ > 0)
      report_.notes.push_back(fmt::format(
          "{} of {} tensors and weights brought other bytes than the plan counts: at an inner cut it takes parts for "
          "shares of what the outer cuts have left, and ranks exchange what they really lack",
          otherwise_, report_.collectives.size()));
    if (arrived_ > *report_.bytes_sent.measured)
      report_.notes.push_back(
          fmt::format("over all devices {} arrived: what several devices of a half all want is counted once above",
                      format_bytes(static_cast<std::int64_t>(arrived_))));
    report_.notes.push_back(fmt::format("measured times are lower quartiles of {} steps", measured_.step.samples));
    if (measured_.cores > 0 && measured_.cores < measured_.ranks)
      report_.notes.push_back(fmt::format("{} ranks share {} cores: their times are not those of {} devices",
                                          measured_.ranks, measured_.cores, measured_.ranks));
    if (scenario_.settings.factors != WhatIf())
      report_.notes.emplace_back("predicted for a machine that is faster or slower by the scenario's factors");
    report_.notes.insert(report_.notes.end(), measured_.notes.begin(), measured_.notes.end());
  }

  const Scenario& scenario_;
  const Model& model_;
  const RatioPlan& plan_;
  const StepMeasurement& measured_;
  ValidationReport report_;
  double arrived_ = 0;
  std::size_t otherwise_ = 0;
};

}  // namespace

Expected<ValidationReport> compare_ratio(const Scenario& scenario, const RatioPlan& plan,
                                         const StepMeasurement& measurement, const CompareLabels& labels) {
  const auto devices = static_cast<std::size_t>(plan.devices());
  if (measurement.step.samples == 0 || measurement.devices.size() != devices ||
      plan.operators.size() != scenario.model->operators.size() || plan.device_compute_s.size() != devices ||
      plan.device_memory.size() != devices)
    return usage_error("what was measured is not a step of this ratio plan");
  double listed = 0;
  for (const MeasuredMove& move : measurement.moves) listed += move.once_bytes;
  if (std::abs(listed - measurement.received_bytes) > kWorthANote * std::max(1.0, listed))
    return usage_error("what was measured does not list all moves of this ratio plan's step");
  return RatioComparison(scenario, plan, measurement).run(labels);
}

}  // namespace turnpoint
