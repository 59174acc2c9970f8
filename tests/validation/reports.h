// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/validation/validation_report.h"

namespace turnpoint::test {

inline ComparedValue compared(std::string name, double predicted, double measured, double spread = 0) {
  return {std::move(name), predicted, measured, measured - spread, measured + 2 * spread, ValueSource::measured};
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
  report.operators = {compared("fc1", 0.004, 0.005), {"fc, the second", 0.002, {}, 0, 0, ValueSource::modelled}};
  report.collectives = {compared("fc1: all-reduce", 0.003, 0.002)};
  report.memory = {compared("parameters", 1e6, 1e6), compared("peak", 2e6, 2.1e6)};
  report.numerics = ReportNumerics{1e-15, 2e-14, 1e-10, "fp64", "fc1"};
  report.bytes_sent = compared("bytes sent", 4096, 4096);
  report.notes = {"times are lower quartiles", "a second note"};
  return report;
}

}  // namespace turnpoint::test
