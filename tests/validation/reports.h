// SPDX-License-Identifier: Apache-2.0
// Reports as runs of CPU ranks leave them, small enough to know by heart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/validation/validation_report.h"

namespace turnpoint::test {

inline ComparedValue timed(std::string name, double predicted, double measured, double q1, double q3) {
  return {std::move(name), predicted, measured, q1, q3, ValueSource::measured};
}
inline ComparedValue modelled(std::string name, double predicted) {
  ComparedValue value;
  value.name = std::move(name);
  value.predicted = predicted;
  return value;
}

inline ComparedValue compared(std::string name, double predicted, double measured, double spread = 0) {
  return timed(std::move(name), predicted, measured, measured - spread, measured + 2 * spread);
}

inline ValidationReport sample_report() {
  ValidationReport report;
  report.model = "mlp";
  report.hardware = "local";
  report.plan = "ft, point 3: 120 MiB, 60 ms";
  report.backend = "cpu";
  report.mode = "ranks";
  report.ranks = report.cores = 2;
  report.date = "2026-11-20T19:00:00Z";
  report.calibrated = true;
  report.step = compared("step", 0.06, 0.05, 0.001);
  report.execution = compared("execution", 0.04, 0.035);
  report.network = compared("network", 0.02, 0.015);
  report.operators = {compared("fc1", 0.004, 0.005), modelled("fc, the second", 0.002)};
  report.collectives = {compared("fc1: all-reduce", 0.003, 0.002)};
  report.memory = {compared("parameters", 1e6, 1e6), compared("peak", 2e6, 2.1e6)};
  report.numerics = ReportNumerics{1e-15, 2e-14, 1e-10, "fp64", "fc1"};
  report.bytes_sent = compared("bytes sent", 4096, 4096);
  report.notes = {"times are lower quartiles", "a second note"};
  return report;
}

inline ValidationReport ranks_report() {
  ValidationReport report;
  report.model = "lenet";
  report.hardware = "local";
  report.plan = "FT, point 3: 120 MiB, 41 ms";
  report.backend = "cpu";
  report.mode = "ranks";
  report.ranks = report.cores = 2;
  report.date = "2026-11-20T18:00:00Z";
  report.step = timed("step", 0.041, 0.040, 0.039, 0.043);
  report.execution = timed("execution", 0.030, 0.032, 0.031, 0.034);
  report.network = timed("network", 0.011, 0.008, 0.0075, 0.009);
  report.operators = {timed("conv1", 0.004, 0.005, 0.0049, 0.0052), timed("fc1", 0.020, 0.0205, 0.020, 0.022),
                      timed("fc2", 0.006, 0.0065, 0.006, 0.007)};
  report.collectives = {timed("fc1: all_reduce", 0.008, 0.005, 0.0048, 0.006),
                        timed("fc2: all_gather", 0.003, 0.003, 0.0029, 0.0031)};
  report.memory = {timed("parameters", 40 << 20, 40 << 20, 0, 0), timed("activations", 20 << 20, 21 << 20, 0, 0),
                   timed("peak", 120 << 20, 118 << 20, 0, 0)};
  report.bytes_sent = timed("bytes sent", 8 << 20, 8 << 20, 0, 0);
  report.numerics = ReportNumerics{2e-8, 3e-7, 1e-6, "fp32", "fc1.weight"};
  report.numerics->rounding = StepRounding{"bf16", 2e-3, 0.03, 0.02, 0.14, "fc2"};
  return report;
}

/// One device's part: what is exchanged was not made.
inline ValidationReport slice_report() {
  ValidationReport report = ranks_report();
  report.mode = "slice";
  report.ranks = 1;
  report.network = modelled("network", 0.011);
  for (ComparedValue& value : report.collectives) value = modelled(value.name, value.predicted);
  report.bytes_sent = modelled("bytes sent", 8 << 20);
  report.numerics.reset();
  report.notes = {"exchanges are not made where one device's part runs alone"};
  return report;
}

inline std::shared_ptr<const ValidationReport> share(ValidationReport report) {
  return std::make_shared<const ValidationReport>(std::move(report));
}

/// The operators that the reports speak of, in this order.
inline ModelPtr named_model() {
  auto model = std::make_shared<Model>();
  model->name = "lenet";
  for (const char* name : {"conv1", "fc1", "fc2"}) {
    Operator op;
    op.name = name;
    model->operators.push_back(op);
  }
  return model;
}

}  // namespace turnpoint::test
